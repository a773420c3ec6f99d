//! Even spacing: each turn once, none closer to the one before than the interval.

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::race::{Race, Racers};

/// 300 a second: an interval that is reckoned in ns.
const RULE: &str = "
[[flow]]
resource = \"order\"
count = 300
behavior = \"pace\"
max_queueing_time = \"100ms\"
";
const INTERVAL_NS: u64 = 3_333_333;
const SPAN_NS: u64 = 2_000_000_000;

#[test]
fn alone_eight_processes_behind_one_pace_are_an_interval_apart_and_lose_no_turn() {
    let agent = Agent::start(RULE, CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: SPAN_NS / 1_000_000,
        ..Race::default()
    };
    let passes = Racers::start(&agent).race_as_one("order", &race);
    for many in [1, 2, 5, 20, 100] {
        let close = passes.too_close(many, INTERVAL_NS);
        assert_eq!(close, None, "of {} passes", passes.len());
    }
    // One may be late for its turn, and the queue of 100 ms holds the next ones meanwhile.
    let turns = usize::try_from(SPAN_NS / INTERVAL_NS).unwrap();
    assert!(
        passes.len() >= turns * 95 / 100,
        "{} of {turns} turns",
        passes.len()
    );
}
