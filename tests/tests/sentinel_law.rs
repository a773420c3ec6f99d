//! `law.kind = "sentinel"`: a plain CPU mark that refuses at once, without second marks.

#![cfg(test)]

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

#[test]
fn a_passed_cpu_mark_refuses_all_inbound_work_and_says_why() {
    let agent = Agent::start("", REJECT);
    let mut actor = Actor::start(&agent.runtime_dir());
    until::holds("a refusal", SOON, || {
        actor.ask("try free 1") == "passed 0 refused 1 reject"
    });
    let host = agent.get("/v1/status").pointer("/scopes/0").cloned();
    let host = host.expect("the host is a scope");
    assert_eq!(host["state"], json!("reject"), "{host}");
    assert_eq!(host["cause"], json!("cpu"), "{host}");
    assert_eq!(host["limits"]["cpu_mark"], json!(0.0002), "{host}");
    let once = agent.ask_http("GET", "/v1/admit?resource=free", "");
    assert_eq!(once.status, 503, "{}", once.body);
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
