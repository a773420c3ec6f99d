//! The real agent, in a runtime directory of its own.

use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use crate::ask;
use crate::machine::process::{Place, Process};
use crate::machine::wait;

/// Longest wait for an agent that starts.
const UP_WITHIN: Duration = Duration::from_secs(20);
/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A running agent.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Ends before its directory goes.
    process: Process,
    dir: TempDir,
}

/// A scope, as the agent's status tells it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Scope {
    pub cgroup: Option<String>,
    pub state: String,
    pub cause: String,
    pub evidence: Vec<String>,
    pub signals: serde_json::Value,
    pub limits: Limits,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Limits {
    pub inflight: Option<u32>,
    pub allowed_qps: Option<f64>,
}

impl Agent {
    /// Starts an agent with these rules and with these lines added to its configuration, and waits
    /// until it serves.
    ///
    /// # Errors
    /// It does not; the last lines of its log are in the error.
    pub(crate) fn start(program: &Path, cpu: usize, rules: &str, config: &str) -> io::Result<Self> {
        let dir = TempDir::with_prefix("tidegate-lab-")?;
        let rules_dir = dir.path().join("rules.d");
        fs::create_dir(&rules_dir)?;
        fs::write(rules_dir.join("lab.toml"), rules)?;
        let config = format!(
            "[http]\nmetrics_enabled = false\n[rules]\ndir = \"{}\"\n{config}",
            rules_dir.display()
        );
        let config_file = dir.path().join("tidegate.toml");
        fs::write(&config_file, config)?;
        let log = File::create(dir.path().join("log"))?;
        let place = Place {
            cpu,
            group: Vec::new(),
        };
        let mut args = vec![
            "run".into(),
            "--config".into(),
            config_file.into_os_string(),
        ];
        args.extend([
            "--runtime-dir".into(),
            dir.path().join("run").into_os_string(),
        ]);
        let logs = [Stdio::from(log.try_clone()?), Stdio::from(log)];
        let process = Process::start(&place, program, args, logs)?;
        let mut agent = Self { process, dir };
        let up = wait::found(UP_WITHIN, || {
            let gone = agent.process.ended();
            (gone || agent.scopes().is_ok_and(|scopes| !scopes.is_empty())).then_some(!gone)
        });
        if up == Some(true) {
            return Ok(agent);
        }
        let log = agent.log();
        Err(io::Error::other(format!(
            "the agent does not serve:\n{log}"
        )))
    }

    /// A file for more rules beside those that it was started with.
    pub(crate) fn further_rules(&self) -> PathBuf {
        self.dir.path().join("rules.d").join("more.toml")
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Where its sockets are.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Its scopes now, the host first.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) fn scopes(&self) -> io::Result<Vec<Scope>> {
        scopes(&self.runtime_dir())
    }
}

/// The scopes of the agent with this runtime directory, the host first.
///
/// # Errors
/// It does not answer.
pub(crate) fn scopes(runtime_dir: &Path) -> io::Result<Vec<Scope>> {
    #[derive(Deserialize)]
    struct Answer {
        scopes: Vec<Scope>,
    }
    let mut stream = UnixStream::connect(runtime_dir.join("http.sock"))?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let answer: Answer = ask::json(&mut stream, "/v1/scopes")?;
    Ok(answer.scopes)
}

/// The agent's program: the one given, or the one beside the lab, which `cargo run` brings up to date.
///
/// # Errors
/// There is none; the error says how to build it.
pub(crate) fn program(given: Option<&Path>) -> io::Result<PathBuf> {
    let release = !cfg!(debug_assertions);
    let path = if let Some(path) = given {
        path.to_owned()
    } else {
        build(release)?;
        std::env::current_exe()?.with_file_name("tidegate")
    };
    if path.exists() {
        return Ok(path);
    }
    let profile = if release { " --release" } else { "" };
    Err(io::Error::other(format!(
        "there is no agent at {}: build it with `cargo build{profile} -p tidegate-agent`, or name one with --agent",
        path.display()
    )))
}

/// Builds the agent when the lab itself was started by cargo.
fn build(release: bool) -> io::Result<()> {
    let Some(cargo) = std::env::var_os("CARGO") else {
        return Ok(());
    };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked", "-p", "tidegate-agent"]);
    command.args(["--bin", "tidegate"]);
    if release {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).status()?;
    if built.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {built}")))
}
