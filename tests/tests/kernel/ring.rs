//! A storm of pauses that overruns the ring while nobody drains it.

use std::time::Duration;

use serde_json::Value;
use tidegate_tests::agent::Agent;
use tidegate_tests::skip;
use tidegate_tests::until;

use crate::jvm::Jvm;
use crate::watching::Watching;

/// The ring has room for 10,922 records; each collection is four, with its safepoint.
const TIMES: u32 = 3000;
/// Records of one collection.
const RECORDS: u64 = 4;
/// Records that the end of the ring may part from their partner, and those that the first look after it drops.
const ENDS: u64 = 16;
/// Collections of the JVM after the storm.
const AFTER: u32 = 5;
const STORM: Duration = Duration::from_mins(4);

fn ebpf(agent: &Agent) -> Value {
    agent.get("/v1/status")["agent"]["ebpf"].clone()
}

/// Collections of the JVMs of a scope that the agent has counted.
fn collections(agent: &Agent, scope: &str) -> u64 {
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let name = format!("tidegate_gc_pause_seconds_count{{scope=\"{scope}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn lost(agent: &Agent) -> u64 {
    ebpf(agent)["lost"]["pauses"].as_u64().expect("a count")
}

/// The scopes of the two JVMs, each in a group of its own.
fn scopes() -> String {
    let scope = |name: &str| {
        let id = std::process::id();
        format!("[[scope]]\nname = \"{name}\"\ncgroup = \"/tidegate-test-{name}-{id}\"\n")
    };
    ["storm", "after"].map(scope).concat()
}

/// Starts a JVM that will collect so often, and waits until its group counts for its scope.
fn start(agent: &Agent, name: &str, times: u32) -> Option<Jvm> {
    let groups = || ebpf(agent)["groups"].as_u64();
    let before = groups();
    let jvm = Jvm::start(name, times, 1)?;
    until::holds("a JVM", STORM, || jvm.has("ready"));
    until::holds("a group with a slot", STORM, || groups() > before);
    Some(jvm)
}

#[test]
fn alone_a_storm_that_overruns_the_ring_is_counted_once_and_nothing_is_stuck() {
    if Watching::begin().is_none() {
        return;
    }
    let config = format!("{}[ebpf]\nmax_overhead = \"100%\"\n", scopes());
    let agent = Agent::start("", &config);
    until::holds("programs", 3 * until::SOON, || {
        ebpf(&agent)["rung"] == "btf"
    });
    let Some(jvm) = start(&agent, "storm", TIMES) else {
        return;
    };
    until::holds("its library", 3 * until::SOON, || {
        let ebpf = ebpf(&agent);
        ebpf["jvm_libraries"] != 0 || ebpf["jvm_fault"].is_string()
    });
    if ebpf(&agent)["jvm_libraries"] == 0 {
        return skip::skip("no JVM here has probes, or they may not be used");
    }
    assert_eq!(lost(&agent), 0);
    agent.stop();
    jvm.go();
    until::holds("the storm", STORM, || jvm.has("done"));
    agent.go_on();
    until::holds("what was lost", until::SOON, || lost(&agent) > 0);
    let whole = u64::from(TIMES) * RECORDS;
    until::holds("the rest of the ring", until::SOON, || {
        collections(&agent, "storm") * RECORDS + lost(&agent) + ENDS >= whole
    });
    // Each record is counted once, as lost or as a part of a collection. A JVM has other safepoints too.
    let (seen, lost_then) = (collections(&agent, "storm"), lost(&agent));
    assert!(
        seen * RECORDS + lost_then <= whole + whole / 20,
        "{seen} collections seen, {lost_then} records lost of {whole}"
    );
    // It goes on: each collection of another JVM is seen, and nothing more is lost.
    let Some(next) = start(&agent, "after", AFTER) else {
        return;
    };
    next.go();
    until::holds("its collections", STORM, || next.has("done"));
    until::holds("all of them in the metrics", until::SOON, || {
        collections(&agent, "after") >= u64::from(AFTER)
    });
    assert_eq!(lost(&agent), lost_then);
}
