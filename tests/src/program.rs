//! The programs under test, found beside the running test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of this workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The agent.
    Tidegate,
    /// The service that does what a test says.
    Actor,
    /// The example of a guarded HTTP server.
    GuardedHttp,
}

impl Program {
    /// Where its file is, from the folder of the build profile on.
    const fn file(self) -> &'static str {
        match self {
            Self::Tidegate => "tidegate",
            Self::Actor => "actor",
            Self::GuardedHttp => "examples/guarded_http",
        }
    }

    const fn build(self) -> &'static [&'static str] {
        match self {
            Self::Tidegate => &["-p", "tidegate-agent", "--bin", "tidegate"],
            Self::Actor => &["-p", "tidegate-tests", "--bin", "actor"],
            Self::GuardedHttp => &["-p", "tidegate-client", "--example", "guarded_http"],
        }
    }

    /// Its file, built first if it is missing.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn path(self) -> PathBuf {
        let path = profile_folder().join(self.file());
        if !path.exists() {
            build(self.build());
        }
        assert!(
            path.exists(),
            "{} is not where cargo put it",
            path.display()
        );
        path
    }

    /// A command that runs it.
    pub fn command(self) -> Command {
        Command::new(self.path())
    }
}

/// The folder of the build profile: a test runs in `PROFILE/deps/`, a program in `PROFILE/`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let folder = test.parent().unwrap_or(Path::new("."));
    let above = folder.parent().filter(|_above| folder.ends_with("deps"));
    above.unwrap_or(folder).to_owned()
}

fn build(what: &[&str]) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked"]).args(what);
    if profile_folder().ends_with("release") {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(
        built.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{command:?}: {built:?}"
    );
}
