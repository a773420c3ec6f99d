//! A limit in every window: never exceeded, and nobody refused while there was room.

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::race::{Passes, Race, Racers};

const RULE: &str = "
[[flow]]
resource = \"order\"
count = 100
window = \"500ms\"
strict = true
";
const WINDOW_NS: u64 = 500_000_000;
const LIMIT: usize = 100;

/// What a bucket as long as the window held.
struct Bucket {
    /// Passes that were in it for sure.
    sure: usize,
    /// And those that may have been.
    possible: usize,
    /// The most that they fell behind a line from nothing to the limit, in requests.
    behind: f64,
}

/// How far the clock of the decisions may be from that of the test, and more.
const APART_NS: u64 = 200_000;

#[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
impl Bucket {
    /// Up to `end_ns`.
    fn of(passes: &Passes, begin_ns: u64, end_ns: u64) -> Self {
        let times = passes.times.iter();
        let is_possible = |(earliest, latest): &&(u64, u64)| {
            latest + APART_NS >= begin_ns && *earliest < end_ns + APART_NS
        };
        let possible: Vec<_> = times.filter(is_possible).collect();
        let sure = possible.iter().filter(|(earliest, latest)| {
            *earliest >= begin_ns + APART_NS && latest + APART_NS < end_ns
        });
        let sure = sure.count();
        let doubtful = possible.len() - sure;
        let mut latest: Vec<u64> = possible.iter().map(|(_earliest, latest)| *latest).collect();
        latest.sort_unstable();
        let behind = (0_usize..).zip(latest).map(|(before, at_ns)| {
            let line = line(at_ns.saturating_sub(begin_ns).min(WINDOW_NS));
            line - before.saturating_sub(doubtful) as f64
        });
        Self {
            sure,
            possible: possible.len(),
            behind: behind.fold(0.0, f64::max),
        }
    }

    /// What had surely passed in it when it was so old.
    fn least_by(&self, age_ns: u64) -> f64 {
        (line(age_ns) - self.behind).clamp(0.0, self.sure as f64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
fn line(age_ns: u64) -> f64 {
    LIMIT as f64 * age_ns as f64 / WINDOW_NS as f64
}

/// The rule keeps its line in whole requests, and rounds up how far passes fell behind it.
const ROUNDING: usize = 2;

/// The refusals that can be judged, and the first of them that came while there was room: what the rule counts, as
/// `shared/limits/src/strict.rs` has it, was below its limit, whatever the order of all that happened at once. How
/// slow the machine is makes this weaker and never wrong.
#[expect(clippy::cast_precision_loss, reason = "small numbers of a test")]
fn judge(passes: &Passes) -> (usize, Option<String>) {
    let begins = |at_ns: u64| at_ns - at_ns % WINDOW_NS;
    let judged = passes
        .refused
        .iter()
        .filter(|(before, after)| begins(before - APART_NS) == begins(after + APART_NS));
    let mut lacks = judged.clone().filter_map(|(before, after)| {
        let edge_ns = begins(*before);
        let previous = Bucket::of(passes, edge_ns - WINDOW_NS, edge_ns);
        let current = Bucket::of(passes, edge_ns, after + 1);
        let (old, new) = (previous.possible, current.possible);
        let gone = previous.least_by(before - APART_NS - edge_ns);
        let counted = (old + new + ROUNDING) as f64 - gone;
        (counted < LIMIT as f64).then(|| {
            let age_ms = (before - edge_ns) / 1_000_000;
            format!("{age_ms} ms into a bucket: {old} in the one before, {new} in this one, {gone} out of the window")
        })
    });
    let first = lacks.next();
    (judged.count(), first)
}

#[test]
fn alone_eight_processes_behind_a_strict_rule_keep_it_in_every_window_and_use_it_up() {
    let agent = Agent::start(RULE, CALM);
    let race = Race {
        tries: u32::MAX,
        for_ms: 2_500,
        ..Race::default()
    };
    let passes = Racers::start(&agent).race_as_one("order", &race);
    // After any pass, the hundredth is half a second away.
    let close = passes.too_close(LIMIT, WINDOW_NS / LIMIT as u64);
    assert_eq!(close, None, "of {} passes", passes.len());
    assert!(passes.len() >= LIMIT, "only {} passed", passes.len());
    let (judged, lack) = judge(&passes);
    assert!(judged > 0, "nobody was refused: {passes}");
    assert_eq!(
        lack, None,
        "refused while there was room, of {judged} refusals"
    );
}

#[test]
fn a_refusal_while_there_was_room_is_found() {
    let full = |passed: u64| Passes {
        // Evenly over a bucket, and a refusal at its end.
        times: (0..passed)
            .map(|pass| 4 * WINDOW_NS + pass * WINDOW_NS / 100)
            .map(|at_ns| (at_ns, at_ns))
            .collect(),
        refused: vec![(5 * WINDOW_NS - 1_000_000, 5 * WINDOW_NS - 999_000)],
    };
    assert_eq!(judge(&full(100)), (1, None));
    let (judged, lack) = judge(&full(96));
    assert!(judged == 1 && lack.is_some());
}
