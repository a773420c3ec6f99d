//! Where things are: sockets, what lasts, configuration and rules.
//!
//! What the command line names comes first, then what the service manager gives (`RuntimeDirectory=` and its like), then
//! what belongs to the user: an ordinary one has places of its own, root has those of the machine.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tidegate_abi::place::{self, SocketDirectory};

use super::output::Failure;
use crate::caller::NoAnswer;
use crate::config::{ConfigRequest, DEFAULT_PATH, RulesOptions};

/// Where an agent of the machine keeps what lasts.
const SYSTEM_STATE: &str = "/var/lib/tidegate";
/// Folder of the product in a directory that it shares with others.
const FOLDER: &str = "tidegate";
/// Name of the configuration in the directory of configuration.
const CONFIG: &str = "tidegate.toml";
/// Name of the directory of rules there.
const RULES: &str = "rules.d";

/// What the choice depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    root: bool,
    /// Variables that are set.
    variables: Vec<(&'static str, PathBuf)>,
}

/// Variables that say where something is.
const VARIABLES: [&str; 7] = [
    place::VARIABLE,
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "HOME",
    "RUNTIME_DIRECTORY",
    "STATE_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
];

impl Surroundings {
    /// Those of this process.
    pub(super) fn here() -> Self {
        let root = rustix::process::geteuid().is_root();
        Self::of(root, |variable| std::env::var_os(variable))
    }

    fn of(root: bool, env: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |variable| {
            let value = env(variable).filter(|value| !value.is_empty())?;
            Some((variable, PathBuf::from(value)))
        };
        Self {
            root,
            variables: VARIABLES.into_iter().filter_map(set).collect(),
        }
    }

    fn set(&self, variable: &str) -> Option<&Path> {
        let found = self.variables.iter().find(|(own, _path)| *own == variable);
        found.map(|(_own, path)| path.as_path())
    }

    fn absolute(&self, variable: &str) -> Option<&Path> {
        self.set(variable).filter(|path| path.is_absolute())
    }

    /// A directory that the service manager made; the first where it made several.
    fn managed(&self, variable: &str) -> Option<PathBuf> {
        let all = self.set(variable)?.to_str()?;
        let first = PathBuf::from(all.split(':').next()?);
        first.is_absolute().then_some(first)
    }

    fn usual(&self, directory: SocketDirectory) -> Option<PathBuf> {
        match directory {
            SocketDirectory::Fixed(path) => Some(PathBuf::from(path)),
            SocketDirectory::Below { variable, name } => Some(self.absolute(variable)?.join(name)),
        }
    }

    /// Where the command line or the user's variable says that the sockets are.
    fn named(&self, given: Option<&Path>) -> Option<PathBuf> {
        given
            .or_else(|| self.set(place::VARIABLE))
            .map(Path::to_owned)
    }

    /// Where an agent makes its sockets when nobody says it.
    fn own(&self) -> Option<PathBuf> {
        let own = if self.root { place::SYSTEM } else { place::OWN };
        self.usual(own)
    }

    /// Where an agent makes its sockets.
    pub(super) fn to_serve(&self, given: Option<&Path>) -> Result<PathBuf, Failure> {
        self.named(given)
            .or_else(|| self.managed("RUNTIME_DIRECTORY"))
            .or_else(|| self.own())
            .ok_or_else(no_directory)
    }

    /// Where an agent keeps what lasts: where it is told, else where the service manager says, else beside the sockets
    /// it was told, else by user.
    pub(super) fn state(&self, given: Option<&Path>, sockets: Option<&Path>) -> PathBuf {
        let by_user = || match self.own() {
            Some(own) if !self.root => own,
            _ => PathBuf::from(SYSTEM_STATE),
        };
        given
            .map(Path::to_owned)
            .or_else(|| self.managed("STATE_DIRECTORY"))
            .or_else(|| self.named(sockets))
            .unwrap_or_else(by_user)
    }

    /// Where an agent is looked for: where it is told, else the first place with one that takes this user's connection,
    /// else the first with a socket at all.
    pub(super) fn to_ask(&self, given: Option<&Path>) -> PathBuf {
        if let Some(named) = self.named(given) {
            return named;
        }
        let places = self.looked_at();
        let find = |is: fn(&Path) -> bool| places.iter().find(|place| is(place)).cloned();
        find(answers)
            .or_else(|| find(has_socket))
            .or_else(|| places.first().cloned())
            .unwrap_or_default()
    }

    /// Where an agent is looked for when nobody names a place.
    fn looked_at(&self) -> Vec<PathBuf> {
        let order = place::ORDER.into_iter();
        order.filter_map(|place| self.usual(place)).collect()
    }

    /// Why nobody answered where [`Self::to_ask`] found nobody. A socket that is nowhere is nowhere in any of the places.
    pub(super) fn unanswered(&self, given: Option<&Path>, error: &NoAnswer) -> Failure {
        let is_nowhere =
            matches!(error, NoAnswer::Connect { error, .. } if error.kind() == ErrorKind::NotFound);
        if self.named(given).is_some() || !is_nowhere {
            return Failure::of(error);
        }
        let places = self.looked_at();
        let places: Vec<_> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        let unset = match place::OWN {
            SocketDirectory::Below { variable, .. }
                if !self.root && self.absolute(variable).is_none() =>
            {
                format!(" ({variable} is not set, so this user has no directory of its own)")
            }
            SocketDirectory::Below { .. } | SocketDirectory::Fixed(_) => String::new(),
        };
        let variable = place::VARIABLE;
        Failure::Failed(format!(
            "no agent has its sockets in {}{unset}: start one with `tidegate run`, or name the directory of another one \
             with --runtime-dir or {variable}",
            places.join(" or ")
        ))
    }

    /// The configuration and what else the command line says of it. A file that nobody names is the first that is there.
    pub(super) fn config(&self, file: Option<PathBuf>, rules: Option<PathBuf>) -> ConfigRequest {
        let own = self.config_directory();
        let files = own.iter().map(|dir| dir.join(CONFIG));
        let mut files = files.chain([PathBuf::from(DEFAULT_PATH)]);
        // Rules that are nowhere yet are waited for in the user's own directory.
        let usual_rules = own.as_ref().map(|dir| dir.join(RULES));
        let usual_rules =
            usual_rules.filter(|own| own.exists() || !RulesOptions::default().dir.exists());
        ConfigRequest {
            file: file.or_else(|| files.find(|file| file.exists())),
            usual_rules_dir: usual_rules,
            rules_dir: rules,
            ..ConfigRequest::default()
        }
    }

    /// The directory of configuration that comes before that of the machine.
    fn config_directory(&self) -> Option<PathBuf> {
        let of_user = || {
            let home = || Some(self.absolute("HOME")?.join(".config"));
            let above = self.absolute("XDG_CONFIG_HOME").map(Path::to_owned);
            let above = above.or_else(home).filter(|_above| !self.root)?;
            Some(above.join(FOLDER))
        };
        self.managed("CONFIGURATION_DIRECTORY").or_else(of_user)
    }
}

fn has_socket(directory: &Path) -> bool {
    directory.join(place::HTTP_SOCKET).exists()
}

fn answers(directory: &Path) -> bool {
    UnixStream::connect(directory.join(place::HTTP_SOCKET)).is_ok()
}

fn no_directory() -> Failure {
    Failure::Invalid(
        "no directory for the sockets: XDG_RUNTIME_DIR is not set to an absolute path and this \
         user is not root; give one with --runtime-dir DIR, such as --runtime-dir /tmp/tidegate"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests;
