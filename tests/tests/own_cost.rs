//! What the agent itself takes, and whether it still ticks when everything else wants the CPU.

#![cfg(test)]

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tidegate_agent::bench::Crowd;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::load::Load;
use tidegate_tests::{skip, until};

const RSS_MAX_KIB: u64 = 20 * 1024;
/// Code and read-only data of a release that come to be resident.
const CODE_KIB: u64 = 6 * 1024;
const RESOURCES: u32 = 1000;
const LOOPS: usize = 200;
/// Ticks under load at least.
const TICKS: u64 = 80;
const LATE_MAX_MS: f64 = 100.0;

fn agent_field(agent: &Agent, name: &str) -> Value {
    let status = agent.get("/v1/status");
    let field = status.get("agent").and_then(|agent| agent.get(name));
    field.cloned().unwrap_or_default()
}

fn ticks(agent: &Agent) -> u64 {
    agent_field(agent, "ticks")
        .as_u64()
        .expect("status tells the ticks")
}

fn wait_for_ticks(agent: &Agent, more: u64, limit: Duration) {
    let wanted = ticks(agent) + more;
    until::holds("ticks", limit, || ticks(agent) >= wanted);
}

/// A line of `/proc/PID/status`, KiB.
fn status_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the agent is there");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line
        .and_then(|rest| rest.split_whitespace().nth(1))
        .expect("the field is there");
    number.parse().expect("it is a number")
}

#[test]
fn with_two_hundred_processes_and_a_thousand_resources_it_stays_under_20_mib() {
    let crowd = match Crowd::start("rss") {
        Ok(crowd) => crowd,
        Err(error) => {
            skip::skip(&format!("needs root and a cpu controller: {error}"));
            return;
        }
    };
    let mut rules = String::new();
    for number in 0..RESOURCES {
        writeln!(rules, "[[flow]]\nresource = \"r-{number}\"\ncount = 100")
            .expect("a string takes it");
    }
    let scope = format!(
        "[[scope]]\nname = \"crowd\"\ncgroup = \"{}\"\n",
        crowd.pattern()
    );
    // With programs in the kernel, where they may be: the loader reads all of the kernel's types.
    let agent = Agent::start(&rules, &format!("{scope}[ebpf]\nmax_overhead = \"100%\"\n"));
    let rung = until::found("kernel programs, or none", 3 * until::SOON, || {
        let ebpf = agent_field(&agent, "ebpf");
        let starting = ebpf["reason"].as_str()?.contains("are being loaded");
        (!starting).then(|| ebpf["rung"].clone())
    });
    // Two looks at all threads.
    wait_for_ticks(&agent, 60, Duration::from_mins(1));
    let status = agent.get("/v1/status");
    let count = |field: &str| {
        status
            .get(field)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    assert!(
        count("scopes") > 20 && count("resources") >= 1000,
        "{status}"
    );
    // A test build has several times the code of a release; what it allocates is the same.
    let own = ["RssAnon", "RssShmem"].map(|field| status_kib(agent.pid(), field));
    let file = status_kib(agent.pid(), "RssFile");
    assert!(
        own.iter().sum::<u64>() + CODE_KIB <= RSS_MAX_KIB,
        "anonymous and shared {own:?} KiB, and {file} KiB of files, with {}",
        rung.0
    );
}

#[test]
fn alone_with_real_time_permission_two_hundred_busy_loops_delay_no_tick_by_100_ms() {
    let agent = Agent::start("", CALM);
    wait_for_ticks(&agent, 1, until::SOON);
    let scheduling = agent_field(&agent, "scheduling");
    if scheduling != "real_time" {
        skip::skip(&format!(
            "needs leave for SCHED_RR; the sampler is {scheduling}"
        ));
        return;
    }
    let before = ticks(&agent);
    // The doors have no such privilege: they are asked when the loops have ended.
    Load::start(LOOPS, 10).wait();
    let under_load = ticks(&agent) - before;
    assert!(under_load >= TICKS, "{under_load} ticks under load");
    let late = agent_field(&agent, "tick_late_p99_ms");
    assert!(
        late.as_f64().is_some_and(|late| late <= LATE_MAX_MS),
        "{late} ms"
    );
}
