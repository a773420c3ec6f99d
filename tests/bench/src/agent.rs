//! A running agent with its real scopes, and a client of it: what a service sees.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use tidegate_client::{Client, OnMissingAgent, Resource};

/// Names of resources, each a case, and the rules of them.
pub const CASES: [&str; 5] = [NO_RULE, FLOW, FLOW_BREAKER, CONCURRENCY, REFUSED];

/// No rule is concerned.
pub const NO_RULE: &str = "no_rule";
/// One flow rule that never refuses.
pub const FLOW: &str = "flow";
/// The same with a breaker that stays closed.
pub const FLOW_BREAKER: &str = "flow_breaker";
/// One concurrency rule that never refuses.
pub const CONCURRENCY: &str = "concurrency";
/// One flow rule that always refuses.
pub const REFUSED: &str = "refused";

const RULES: &str = r#"
[[flow]]
resource = "flow"
count = 16000000

[[flow]]
resource = "flow_breaker"
count = 16000000

[[degrade]]
resource = "flow_breaker"
grade = "slow_ratio"
max_rt = "1h"
threshold = 0.5
recovery_timeout = "1h"

[[flow]]
resource = "concurrency"
grade = "concurrency"
count = 1000000

[[flow]]
resource = "refused"
count = 0
"#;

/// What the scopes of an agent say, whatever else the machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchScopes {
    /// They admit without a look.
    Calm,
    /// Host and own group are in overload, and their limits leave room for one caller: each decision counts.
    Overload,
    /// They refuse all inbound work.
    Reject,
}

impl BenchScopes {
    /// Options under which they are so: a mark and a limit that are never reached, or a mark that always is. No stall of the
    /// machine makes the agent a silent one.
    const fn options(self) -> &'static str {
        match self {
            Self::Calm => {
                "[agent_loss]\ntime_to_live = \"1m\"\n[cpu]\nenabled = false\n[law.entry]\nleast_requests = 1000000\n\
                 [law.cold]\nentry_per_cpu = 1000000\n"
            }
            Self::Overload => {
                "[agent_loss]\ntime_to_live = \"1m\"\n[cpu]\nenter = 0.001\nleave = 0\nsustained = \"0s\"\n"
            }
            Self::Reject => {
                "[agent_loss]\ntime_to_live = \"1m\"\n[cpu]\nenter = 0.001\nleave = 0\nsustained = \"0s\"\n\
                 action = \"reject\"\n"
            }
        }
    }

    /// The state of that name: `calm`, `overload` or `reject`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "calm" => Some(Self::Calm),
            "overload" => Some(Self::Overload),
            "reject" => Some(Self::Reject),
            _ => None,
        }
    }
}

/// How long an agent may take to serve.
const SOON: Duration = Duration::from_secs(20);

/// An agent with rules for [`CASES`]. It is killed when it is dropped.
#[derive(Debug)]
pub struct RunningAgent {
    dir: PathBuf,
    child: Child,
}

impl RunningAgent {
    /// Starts the program that `TIDEGATE` names, or the one that was built last below `target/`; `None` if there
    /// is none.
    ///
    /// # Panics
    /// It does not serve.
    #[must_use]
    pub fn start(scopes: BenchScopes) -> Option<Self> {
        let program = program()?;
        let dir = env::temp_dir().join(format!("tidegate-bench-{}-{scopes:?}", process::id()));
        let rules = dir.join("rules.d");
        fs::create_dir_all(&rules).expect("a place for files");
        fs::write(rules.join("bench.toml"), RULES).expect("a place for files");
        let config = format!(
            "[http]\nmetrics_enabled = false\n[ebpf]\nenabled = false\n[rules]\ndir = \"{}\"\n{}",
            rules.display(),
            scopes.options()
        );
        fs::write(dir.join("tidegate.toml"), config).expect("a place for files");
        let child = Command::new(program)
            .arg("run")
            .arg("--config")
            .arg(dir.join("tidegate.toml"))
            .arg("--runtime-dir")
            .arg(dir.join("run"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program that can be started");
        let agent = Self { dir, child };
        let begin = Instant::now();
        while connect(&agent.runtime_dir()).is_none() {
            assert!(begin.elapsed() < SOON, "the agent does not serve");
            thread::yield_now();
        }
        Some(agent)
    }

    /// Its runtime directory.
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        self.dir.join("run")
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.dir));
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("TIDEGATE") {
        return Some(named.into());
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let built = ["release", "debug"].map(|profile| target.join(profile).join("tidegate"));
    built.into_iter().find(|program| program.exists())
}

fn connect(dir: &Path) -> Option<Client> {
    let builder = Client::builder().runtime_dir(dir);
    builder
        .on_missing_agent(OnMissingAgent::Fail)
        .connect()
        .ok()
}

/// A client of the agent of a runtime directory.
///
/// # Panics
/// There is none.
#[must_use]
pub fn client(dir: &Path) -> Client {
    connect(dir).expect("an agent that serves")
}

/// One request as a service makes it; whether it was admitted.
#[inline(always)]
pub fn ask(resource: &Resource) -> bool {
    match resource.enter() {
        Ok(permit) => {
            permit.ok();
            true
        }
        Err(_refused) => false,
    }
}
