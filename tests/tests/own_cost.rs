//! What the agent itself takes, and whether it still ticks when everything else wants the CPU.

#![cfg(test)]

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tidegate_bench::SleepingProcesses;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::load::CpuHogs;
use tidegate_tests::{skip, until};

/// Anonymous and shared memory at most. A release has some 6 MiB of code and read-only data beside it, so that
/// this is well under 20 MiB.
const OWN_MAX_KIB: u64 = 10 * 1024;
const RESOURCES: u32 = 1000;
const LOOPS: usize = 200;
const LOAD_S: u32 = 20;
/// Ticks under load at least.
const TICKS: u64 = 160;

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
    let crowd = match SleepingProcesses::start("rss") {
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
        own.iter().sum::<u64>() <= OWN_MAX_KIB,
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
    let before = Late::of(&agent);
    // The doors have no such privilege: they are asked when the loops have ended.
    CpuHogs::start(LOOPS, LOAD_S).wait();
    let after = Late::of(&agent);
    let ticks = after.ticks - before.ticks;
    assert!(ticks >= TICKS, "{ticks} ticks under load");
    // A few ticks are before the load and after it: they may be late, and do not make room for others.
    let late = ticks - (after.in_time - before.in_time);
    assert!(
        late * 100 <= TICKS,
        "{late} of {ticks} ticks were 100 ms late"
    );
}

/// Ticks so far, and those of them that began at most 100 ms after they were due.
struct Late {
    ticks: u64,
    in_time: u64,
}

impl Late {
    fn of(agent: &Agent) -> Self {
        let metrics = agent.ask_http("GET", "/metrics", "").body;
        let count = |name: &str| -> u64 {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            let count = line.expect("the histogram is told").trim();
            count.parse().expect("a count")
        };
        Self {
            ticks: count("tidegate_tick_late_seconds_count"),
            in_time: count("tidegate_tick_late_seconds_bucket{le=\"0.1\"}"),
        }
    }
}
