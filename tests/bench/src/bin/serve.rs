//! Starts an agent whose scopes are in a state, says where it serves, and ends it with its own input: `serve STATE`, with
//! `calm`, `overload` or `reject`.

use std::io::{self, Read as _};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_decisions::agent::{BenchScopes, NO_RULE, RunningAgent, ask, client};

/// The state is there within a few ticks.
const SETTLED: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let Some(scopes) = std::env::args()
        .nth(1)
        .as_deref()
        .and_then(BenchScopes::of_name)
    else {
        eprintln!("serve calm|overload|reject");
        return ExitCode::from(2);
    };
    let Some(agent) = RunningAgent::start(scopes) else {
        eprintln!("no agent was built: cargo build, or name one in TIDEGATE");
        return ExitCode::from(3);
    };
    let resource = client(&agent.runtime_dir())
        .resource(NO_RULE)
        .expect("a name");
    let begin = Instant::now();
    while begin.elapsed() < SETTLED {
        ask(&resource);
        thread::park_timeout(Duration::from_millis(1));
    }
    println!("{}", agent.runtime_dir().display());
    // Whoever started it closes this when it has seen enough.
    let _ended = io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
