//! A breaker: tripped for all, and probed by one.

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::race::{Passes, RACERS, Race, Racers, Then};

const RULE: &str = "
[[degrade]]
resource = \"pay\"
grade = \"error_count\"
threshold = 0
min_requests = 1
recovery_timeout = \"500ms\"
probe_lease = \"4s\"
";

/// Asks over and over until it is let in once, and keeps that.
const PROBE: Race = Race {
    tries: u32::MAX,
    passes: 1,
    for_ms: 1_500,
    count: 1,
    value: None,
    prioritized: false,
    then: Then::Keep,
};

/// The one who was let in, if it was one.
fn prober(passes: &[Passes]) -> usize {
    let all: usize = passes.iter().map(Passes::len).sum();
    assert_eq!(all, 1, "probes: {passes:?}");
    passes.iter().position(|passes| !passes.is_empty()).unwrap()
}

#[test]
fn alone_one_of_eight_processes_is_the_probe_and_a_killed_one_frees_its_place() {
    let agent = Agent::start(RULE, CALM);
    let mut racers = Racers::start(&agent);
    let trip = Race {
        passes: 1,
        then: Then::Error,
        ..PROBE
    };
    // All fail at one moment; whoever comes after the first failure is refused.
    let tripped = racers.race_as_one("pay", &Race { tries: 1, ..trip });
    assert!((1..=RACERS).contains(&tripped.len()));
    // Open, then half-open for longer than the race goes on.
    let first = prober(&racers.race("pay", &PROBE));
    racers.actors[first].kill();
    racers.actors.remove(first);
    // The lease of the dead runs out, and the breaker is probed again after its recovery.
    let long = Race {
        for_ms: 4_500,
        ..PROBE
    };
    let second = prober(&racers.race("pay", &long));
    assert_eq!(racers.actors[second].ask("give 1"), "held 0");
    // Closed by the good end of the probe.
    let passes = racers.race_as_one(
        "pay",
        &Race {
            tries: 5,
            ..Race::default()
        },
    );
    assert_eq!(passes.len(), 5 * racers.actors.len());
}
