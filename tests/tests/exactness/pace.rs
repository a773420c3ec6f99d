//! Even spacing: each turn once, none closer to the one before than the interval, and nobody refused while the
//! queue had room.

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::race::{Passes, Race, Racers};

/// 300 a second: an interval that is reckoned in ns. Six of the eight can wait, so the others are refused.
const RULE: &str = "
[[flow]]
resource = \"order\"
count = 300
behavior = \"pace\"
max_queueing_time = \"20ms\"
";
const INTERVAL_NS: u64 = 3_333_333;
const LONGEST_NS: u64 = 20_000_000;
const SPAN_MS: u64 = 2_000;
/// How far the clock of the decisions may be from that of the test, and more.
const APART_NS: u64 = 200_000;

/// The first refusal that came while the queue had room, if there is one.
///
/// One is refused whose turn would be later than the longest wait. So all turns from then on up to an interval before
/// that are taken, an interval apart, each by a request that was let in at that time: in the span there is a pass for
/// each. How slow the machine is makes their spans longer and this weaker, and never wrong.
fn judge(passes: &Passes) -> Option<String> {
    // One for the interval, and one for turns that are not whole at both ends.
    let needed = usize::try_from(LONGEST_NS / INTERVAL_NS).unwrap() - 2;
    passes.refused.iter().find_map(|(before_ns, after_ns)| {
        let span = before_ns - APART_NS..=after_ns + LONGEST_NS + APART_NS;
        let times = passes.times.iter();
        let turns =
            times.filter(|(earliest, latest)| latest >= span.start() && earliest <= span.end());
        let turns = turns.count();
        (turns < needed).then(|| format!("{turns} turns of {needed} after {before_ns}: {passes}"))
    })
}

#[test]
fn alone_eight_processes_behind_one_pace_are_an_interval_apart_and_lose_no_turn() {
    let agent = Agent::start(RULE, CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: SPAN_MS,
        ..Race::default()
    };
    let passes = Racers::start(&agent).race_as_one("order", &race);
    for many in [1, 2, 5, 20, 100] {
        let close = passes.too_close(many, INTERVAL_NS);
        assert_eq!(close, None, "of {} passes", passes.len());
    }
    assert!(passes.len() > 100, "only {} passed", passes.len());
    assert!(!passes.refused.is_empty(), "nobody was refused: {passes}");
    assert_eq!(judge(&passes), None);
}

#[test]
fn a_refusal_while_the_queue_had_room_is_found() {
    let turns = |taken: u64| Passes {
        times: (1..=taken)
            .map(|turn| 1_000_000_000 + turn * INTERVAL_NS)
            .map(|at_ns| (at_ns, at_ns))
            .collect(),
        refused: vec![(1_000_000_000, 1_000_001_000)],
    };
    assert_eq!(judge(&turns(6)), None);
    assert!(judge(&turns(2)).is_some());
}
