//! Which directory the sockets are in.

use std::path::{Path, PathBuf};

use super::output::Failure;
use crate::door::gate_socket::FILE_NAME;

/// Where a system-wide agent has its sockets.
const SYSTEM: &str = "/run/tidegate";
/// Where it keeps what lasts.
const SYSTEM_STATE: &str = "/var/lib/tidegate";

/// What the choice depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    root: bool,
    /// `$XDG_RUNTIME_DIR`.
    user_directory: Option<PathBuf>,
    /// `$STATE_DIRECTORY`, as the service manager gives it.
    state_directory: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn here() -> Self {
        Self {
            root: rustix::process::geteuid().is_root(),
            user_directory: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
            state_directory: std::env::var_os("STATE_DIRECTORY").map(PathBuf::from),
        }
    }

    fn own(&self) -> Option<PathBuf> {
        if self.root {
            return Some(PathBuf::from(SYSTEM));
        }
        let directory = self.user_directory.as_deref()?;
        directory.is_absolute().then(|| directory.join("tidegate"))
    }

    /// Where an agent makes its sockets.
    pub(super) fn to_serve(&self, given: Option<&Path>) -> Result<PathBuf, Failure> {
        given
            .map(Path::to_owned)
            .or_else(|| self.own())
            .ok_or_else(no_directory)
    }

    /// Where an agent keeps what lasts: where it is told, else beside the sockets it was told, else
    /// where the service manager says, else by user.
    pub(super) fn state(&self, given: Option<&Path>, sockets: Option<&Path>) -> PathBuf {
        if let Some(given) = given.or(sockets) {
            return given.to_owned();
        }
        if let Some(state) = self
            .state_directory
            .as_ref()
            .filter(|dir| dir.is_absolute())
        {
            return state.clone();
        }
        match self.own() {
            Some(own) if !self.root => own,
            _ => PathBuf::from(SYSTEM_STATE),
        }
    }

    /// Where an agent is looked for: that of this user, else that of the system.
    pub(super) fn to_ask(&self, given: Option<&Path>) -> PathBuf {
        let own = given.map(Path::to_owned).or_else(|| self.own());
        match own {
            Some(own) if given.is_some() || own.join(FILE_NAME).exists() => own,
            _ => PathBuf::from(SYSTEM),
        }
    }
}

fn no_directory() -> Failure {
    Failure::Invalid(
        "no directory for the sockets: XDG_RUNTIME_DIR is not set to an absolute path and this \
         user is not root; give one with --runtime-dir DIR, such as --runtime-dir /tmp/tidegate"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(directory: Option<&Path>) -> Surroundings {
        Surroundings {
            root: false,
            user_directory: directory.map(Path::to_owned),
            state_directory: None,
        }
    }

    #[test]
    fn an_agent_serves_where_it_is_told_then_by_user() {
        let root = Surroundings {
            root: true,
            user_directory: Some("/run/user/0".into()),
            state_directory: None,
        };
        assert_eq!(root.to_serve(None), Ok(PathBuf::from("/run/tidegate")));
        let user = user(Some(Path::new("/run/user/7")));
        assert_eq!(user.to_serve(None), Ok("/run/user/7/tidegate".into()));
        assert_eq!(user.to_serve(Some(Path::new("x"))), Ok("x".into()));
    }

    #[test]
    fn without_any_directory_the_error_says_what_to_do() {
        for directory in [None, Some(Path::new("relative")), Some(Path::new(""))] {
            let Err(Failure::Invalid(text)) = user(directory).to_serve(None) else {
                panic!("no directory can be chosen");
            };
            assert!(text.contains("--runtime-dir"), "{text}");
        }
    }

    #[test]
    fn what_lasts_is_where_it_is_told_then_where_the_service_manager_says_then_by_user() {
        let mut user = user(Some(Path::new("/run/user/7")));
        assert_eq!(user.state(None, None), Path::new("/run/user/7/tidegate"));
        user.root = true;
        assert_eq!(user.state(None, None), Path::new("/var/lib/tidegate"));
        user.state_directory = Some("/var/lib/private/tidegate".into());
        assert_eq!(
            user.state(None, None),
            Path::new("/var/lib/private/tidegate")
        );
        let (state, sockets) = (Path::new("/s"), Path::new("/r"));
        assert_eq!(user.state(None, Some(sockets)), sockets);
        assert_eq!(user.state(Some(state), Some(sockets)), state);
    }

    #[test]
    fn a_user_without_an_agent_asks_that_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let user = user(Some(directory.path()));
        assert_eq!(user.to_ask(None), Path::new("/run/tidegate"));
        let own = directory.path().join("tidegate");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(FILE_NAME), "").unwrap();
        assert_eq!(user.to_ask(None), own);
        assert_eq!(user.to_ask(Some(Path::new("x"))), Path::new("x"));
    }
}
