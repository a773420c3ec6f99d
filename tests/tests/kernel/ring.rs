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
const STORM: Duration = Duration::from_mins(4);

fn ebpf(agent: &Agent) -> Value {
    agent.get("/v1/status")["agent"]["ebpf"].clone()
}

#[test]
fn alone_a_storm_that_overruns_the_ring_is_counted_and_nothing_is_stuck() {
    if Watching::begin().is_none() {
        return;
    }
    let agent = Agent::start("", "[ebpf]\nmax_overhead = \"100%\"\n");
    let libraries = until::found("programs", until::SOON, || {
        let ebpf = ebpf(&agent);
        (ebpf["rung"] == "btf").then(|| ebpf["jvm_libraries"].as_u64().unwrap_or(0))
    });
    let Some(jvm) = Jvm::start("storm", TIMES, 1) else {
        return;
    };
    until::holds("a JVM", STORM, || jvm.has("ready"));
    if libraries.0 == 0 && ebpf(&agent)["jvm_libraries"] == 0 {
        return skip::skip("no JVM here has probes");
    }
    agent.stop();
    jvm.go();
    until::holds("the storm", STORM, || jvm.has("done"));
    agent.go_on();
    let lost = until::found("what was lost", until::SOON, || {
        ebpf(&agent)["lost"]["pauses"]
            .as_u64()
            .filter(|lost| *lost > 0)
    });
    assert!(lost.0 < u64::from(TIMES) * 8, "{lost:?}");
    // It goes on: the pauses of another JVM are seen.
    let Some(next) = Jvm::start("after", 5, 1) else {
        return;
    };
    until::holds("a JVM", STORM, || next.has("ready"));
    next.go();
    until::holds("its collections", STORM, || next.has("done"));
    until::holds("records that are drained", until::SOON, || {
        let now = ebpf(&agent)["lost"]["pauses"].as_u64();
        now == Some(lost.0)
    });
}
