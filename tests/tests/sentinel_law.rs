//! `law.kind = "sentinel"`: a plain CPU mark that refuses at once, without second marks.

#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::Agent;
use tidegate_tests::until::{self, SOON};

/// No machine is as idle as this asks for; `sustained` is the adaptive law's and counts for nothing.
const REJECT: &str = "
[law]
kind = \"sentinel\"
[cpu]
enter = 0.0002
leave = 0.0001
sustained = \"10m\"
[load]
enabled = false
";

/// The load average of a machine that was idle rises over this within seconds of work.
const LOADED: &str = "
[law]
kind = \"sentinel\"
[cpu]
enabled = false
[load]
enabled = true
enter_per_cpu = 0.001
leave_per_cpu = 0.0005
";

/// The kernel computes the load average every five seconds.
const A_MINUTE: Duration = Duration::from_mins(1);

#[test]
fn a_passed_cpu_mark_refuses_all_inbound_work_and_says_why() {
    let agent = Agent::start("", REJECT);
    let mut actor = Actor::start(&agent.runtime_dir());
    until::holds("a refusal", SOON, || {
        // The mark of the host, or the same mark of the group that the tests run in.
        let answer = actor.ask("try free 1");
        answer == "passed 0 refused 1 cpu" || answer == "passed 0 refused 1 reject"
    });
    let host = agent.get("/v1/status").pointer("/scopes/0").cloned();
    let host = host.expect("the host is a scope");
    assert_eq!(host["state"], json!("reject"), "{host}");
    assert_eq!(host["cause"], json!("cpu"), "{host}");
    assert_eq!(host["limits"]["cpu_mark"], json!(0.0002), "{host}");
    let once = agent.ask_http("GET", "/v1/admit?resource=free", "");
    assert_eq!(once.status, 503, "{}", once.body);
}

/// Load for a machine that may be idle.
struct Spinning(Arc<AtomicBool>);

impl Spinning {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(stop)
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn over_the_load_mark_each_request_is_held_against_best_rate_and_least_time_at_its_moment() {
    let _load = Spinning::start();
    let agent = Agent::start("", LOADED);
    let mut actor = Actor::start(&agent.runtime_dir());
    until::holds("a load over the mark", A_MINUTE, || {
        agent.get("/v1/status").pointer("/scopes/0/cause") == Some(&json!("load"))
    });
    // Nothing has ended yet: one success a bucket and 5 s are assumed, 2 a second for 5 s. A request is
    // refused that finds more than these 10.
    assert_eq!(actor.ask("take free 30"), "taken 11 refused 19");
    assert_eq!(actor.ask("try free 1"), "passed 0 refused 1 load");
    // No tick needs to pass: one that has just ended at once leaves no time that is carried.
    assert_eq!(actor.ask("give 1"), "held 10");
    assert_eq!(actor.ask("try free 1"), "passed 0 refused 1 load");
    assert_eq!(actor.ask("give 9"), "held 1");
    assert_eq!(actor.ask("try free 1"), "passed 1 refused 0 none");
}

#[test]
fn without_marks_it_refuses_nobody_whatever_is_in_flight() {
    let off = REJECT.replace("sustained = \"10m\"", "enabled = false");
    let agent = Agent::start("", &off);
    let mut actor = Actor::start(&agent.runtime_dir());
    assert_eq!(actor.ask("take free 500"), "taken 500 refused 0");
    until::holds("a scope that was judged", SOON, || {
        agent.get("/v1/status").pointer("/scopes/0/state") == Some(&json!("healthy"))
    });
    assert_eq!(actor.ask("take free 500"), "taken 500 refused 0");
}
