//! Programs that cost more than they may: the agent takes cheaper ones, then none, and says so.

use std::io::{Read, Write, pipe};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tidegate_tests::agent::Agent;
use tidegate_tests::program::Program;
use tidegate_tests::until;

use crate::watching::Watching;

/// The least that may be set: 1 ms a second, at 200 ns an event 5000 of them.
const LEAST: &str = "[ebpf]\nmax_overhead = \"0.1%\"\n";
/// Two steps of five looks, one a second, and time to load what is cheaper.
const STEPS: Duration = Duration::from_mins(1);

/// Two threads that hand a byte to and fro as fast as they can, until this is dropped.
struct Switches {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Switches {
    fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (there, back) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        let stopped = Arc::clone(&stop);
        let threads = vec![
            // Relaxed: the flag says all there is.
            std::thread::spawn(move || {
                hand(back.0, there.1, || !stopped.load(Ordering::Relaxed));
            }),
            std::thread::spawn(move || {
                let mut to = back.1;
                if to.write_all(&[0]).is_ok() {
                    hand(there.0, to, || true);
                }
            }),
        ];
        Self { stop, threads }
    }
}

/// Passes bytes on until it is to stop or the other end is gone.
fn hand(mut from: impl Read, mut to: impl Write, goes_on: impl Fn() -> bool) {
    let mut byte = [0];
    while goes_on() && from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}

impl Drop for Switches {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has ended as well.
            let _ended = thread.join();
        }
    }
}

/// Lines of a scrape that begin so.
fn shown(agent: &Agent, line: &str) -> bool {
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    metrics.lines().any(|shown| shown == line)
}

#[test]
fn alone_programs_that_cost_too_much_give_way_to_cheaper_ones_and_then_to_files() {
    if Watching::begin().is_none() {
        return;
    }
    let agent = Agent::start_logging("", LEAST);
    let _switches = Switches::begin();
    for rung in ["btf", "sched_info", "files"] {
        let line = format!("tidegate_kernel_rung{{rung=\"{rung}\"}} 1");
        until::holds(rung, STEPS, || shown(&agent, &line));
    }
    let cause = "tidegate_signal_missing{scope=\"host\",signal=\"runqueue_wait_p99\",cause=\"programs_over_budget\"} 1";
    until::holds(cause, until::SOON, || shown(&agent, cause));
    let reason = agent.get("/v1/status")["agent"]["ebpf"]["reason"].to_string();
    let log = agent.log();
    let steps = |text: &str| -> usize {
        let of = |rung| format!("not by {rung}: kernel programs cost more than max_overhead");
        ["btf", "sched_info"]
            .map(|rung| text.matches(&of(rung)).count())
            .iter()
            .sum()
    };
    assert_eq!(steps(&reason), 2, "{reason}");
    let warned: String = log
        .lines()
        .filter(|line| line.contains("step down"))
        .collect();
    assert_eq!(steps(&warned), 2, "{log}");
    // The doctor's own programs are loaded for a moment and cost nothing: it asks the agent.
    let directory = agent.runtime_dir();
    let mut doctor = Command::new(Program::Tidegate.path());
    let doctor = doctor.args(["doctor", "--json", "--runtime-dir"]);
    let found = doctor.arg(directory).output().expect("it starts");
    let found: Value = serde_json::from_slice(&found.stdout).expect("the doctor prints JSON");
    let running = &found["rungs"]["running_agent"];
    assert_eq!(running["rung"], "files", "{running}");
    assert_eq!(steps(&running["reason"].to_string()), 2, "{running}");
    assert_eq!(running["remedy"], "raise [ebpf] max_overhead", "{running}");
    // What the files tell goes on.
    assert!(shown(
        &agent,
        "tidegate_signal_measured{scope=\"host\",signal=\"cpu\"} 1"
    ));
}
