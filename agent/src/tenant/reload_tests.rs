//! What a resource that has warmed up still is after a reload, on a clock that the test moves.

use std::cell::Cell;

use tidegate_abi::argument::{ArgumentKind, text_hash};
use tidegate_abi::decision::Outcome;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Arg, GateVerdict, Request, Step};
use tidegate_segment::lane::Lane;

use super::Tenant;
use super::rule_index::tests::rule_index;
use super::tests::{Scripted, tenant};

const SECOND: u64 = 1_000_000_000;

/// A resource that is asked evenly, and whose rules change.
struct Story {
    tenant: Tenant,
    clock: Scripted,
    publishes: u64,
}

impl Story {
    fn new(rules: &str) -> Self {
        let mut story = Self {
            tenant: tenant(Geometry::new(16, 2, 2, 2).unwrap()),
            clock: Scripted(Cell::new(1_000 * SECOND)),
            publishes: 0,
        };
        story.reload(rules);
        story
    }

    fn reload(&mut self, rules: &str) {
        // Sets follow each other by a second.
        self.publishes += 1;
        let at_ns = self.publishes * SECOND;
        let published = self.tenant.directory().publish(rule_index(rules), at_ns);
        assert_eq!(published.unwrap().unplaced, []);
    }

    /// How many of as many requests pass that come in that part of a second.
    fn passes(&self, asks: u64, part_ns: u64) -> u32 {
        let (gate, slot) = (
            self.tenant.gate(),
            self.tenant.directory().resolve("warm").slot,
        );
        let begin_ns = self.clock.now_ns();
        let passes = (0..asks).map(|ask| {
            self.clock.0.set(begin_ns + ask * part_ns / asks);
            let args = [Arg::One(text_hash(ArgumentKind::Text, "v"))];
            let request = Request {
                args: &args,
                ..Request::default()
            };
            let mut step = gate.enter(&self.clock, Lane::SHARED, slot, request);
            while let Step::Wait(waiting) = step {
                step = gate.resume(&self.clock, Lane::SHARED, &waiting);
            }
            match step {
                Step::Done(GateVerdict::Admitted(pass)) => {
                    gate.exit(&self.clock, Lane::SHARED, pass, Outcome::Ok);
                    1
                }
                Step::Done(GateVerdict::Refused(_)) => 0,
                other @ (Step::Done(GateVerdict::Stale) | Step::Wait(_)) => panic!("{other:?}"),
            }
        });
        let passes = passes.sum();
        self.clock.0.set(begin_ns + part_ns);
        passes
    }

    fn seconds(&self, many: u32) -> Vec<u32> {
        (0..many).map(|_second| self.passes(180, SECOND)).collect()
    }
}

fn warm_up(count: u32, period_s: u32, more: &str) -> String {
    format!(
        "{more}\n[[flow]]\nresource = \"warm\"\ncount = {count}\nbehavior = \"warm_up\"\nwarm_up_period = \"{period_s}s\"\n"
    )
}

const ANOTHER: &str = "[[flow]]\nid = \"moved\"\nresource = \"another\"\ncount = 1";

fn warmed() -> Story {
    let story = Story::new(&warm_up(30, 5, ""));
    let rise = story.seconds(10);
    assert_eq!((rise[0], rise[9]), (10, 30), "from cold to warm: {rise:?}");
    story
}

#[test]
fn a_rule_that_says_the_same_is_as_warm_as_it_was() {
    let mut story = warmed();
    story.reload(&warm_up(30, 5, ANOTHER));
    assert_eq!(story.seconds(3), [30, 30, 30]);
    // In the middle of its rise as well: the other half goes on where the first one was.
    let (whole, mut broken) = (
        Story::new(&warm_up(30, 5, "")),
        Story::new(&warm_up(30, 5, "")),
    );
    let mut rise = broken.seconds(4);
    broken.reload(&warm_up(30, 5, ANOTHER));
    rise.extend(broken.seconds(6));
    assert_eq!(rise, whole.seconds(10));
}

#[test]
fn a_rule_whose_count_alone_changed_keeps_its_window_and_its_warmth() {
    let mut story = warmed();
    assert_eq!(story.passes(90, SECOND / 2), 30);
    story.reload(&warm_up(45, 5, ""));
    assert_eq!(story.passes(90, SECOND / 2), 15, "30 of the 45 have passed");
    assert_eq!(story.seconds(2), [45, 45]);
}

#[test]
fn a_cold_resource_whose_count_was_raised_is_still_cold() {
    let mut story = Story::new(&warm_up(3, 5, ""));
    assert_eq!(story.seconds(1), [1]);
    story.reload(&warm_up(90, 5, ""));
    let rise = story.seconds(10);
    assert_eq!((rise[0], rise[9]), (30, 90), "{rise:?}");
    assert!(rise.is_sorted(), "{rise:?}");
}

#[test]
fn a_warm_resource_whose_count_was_lowered_is_still_warm() {
    let mut story = Story::new(&warm_up(90, 5, ""));
    let rise = story.seconds(10);
    assert_eq!((rise[0], rise[9]), (30, 90), "{rise:?}");
    story.reload(&warm_up(9, 5, ""));
    assert_eq!(story.seconds(3), [9, 9, 9]);
}

/// The most that passes under a count.
type Most = fn(u32) -> u32;

/// The fields of a rule of each kind that keeps a state, and the most that passes in 400 ms under a count.
const KINDS: [(&str, Most); 10] = [
    ("flow:", |count| count),
    ("flow:window = \"10s\"", |count| count),
    ("flow:window = \"10s\"\nstrict = true", |count| count),
    (
        "flow:behavior = \"warm_up\"\nwarm_up_period = \"5s\"",
        |count| count,
    ),
    (
        "flow:behavior = \"warm_up_pace\"\nwarm_up_period = \"5s\"\nmax_queueing_time = \"1ms\"",
        paced,
    ),
    (
        "flow:behavior = \"pace\"\nmax_queueing_time = \"1ms\"",
        paced,
    ),
    ("param:index = 0\nburst = 2", |count| count + 2),
    (
        "param:index = 0\nwindow = \"10s\"\nstrict = true",
        |count| count,
    ),
    (
        "param:index = 0\nbehavior = \"pace\"\nmax_queueing_time = \"1ms\"",
        paced,
    ),
    // The value that is asked for is one of its own.
    (
        "param:index = 0\nwindow = \"10s\"\nitems = [{ value = \"v\", count = COUNT }]\n#",
        |count| count,
    ),
];

/// 2 in 5 of the count, one at once, and one whose turn is a ms away.
fn paced(count: u32) -> u32 {
    count * 2 / 5 + 2
}

fn kind_of(fields: &str, count: u32) -> String {
    let (kind, fields) = fields.split_once(':').unwrap();
    let fields = fields.replace("COUNT", &count.to_string());
    format!("[[{kind}]]\nresource = \"warm\"\n{fields}\ncount = {count}\n")
}

#[test]
fn no_kind_lets_more_through_after_a_reload_than_its_new_count() {
    let counts = [1, 12, 150];
    for (fields, most) in KINDS {
        for (before, after) in counts.iter().flat_map(|a| counts.map(|b| (*a, b))) {
            for parts in [0, 1, 7] {
                let mut story = Story::new(&kind_of(fields, before));
                // Few and many requests, and the reload at other moments of a window.
                story.passes(parts * parts * 4, SECOND / 10 * parts);
                story.reload(&kind_of(fields, after));
                let passed = story.passes(170, SECOND * 2 / 5);
                let case = format!("{fields}: {before} to {after} after {parts} tenths");
                assert!(passed <= most(after), "{case}: {passed} of {}", most(after));
            }
        }
    }
}

#[test]
fn a_raised_strict_limit_holds_in_the_windows_that_began_before() {
    let item = "param:index = 0\nstrict = true\nitems = [{ value = \"v\", count = COUNT }]\n#";
    for fields in ["flow:strict = true", "param:index = 0\nstrict = true", item] {
        let mut story = Story::new(&kind_of(fields, 10));
        // Ten evenly over a window; a tenth of a second into the next one nine of them are in it.
        assert_eq!(story.passes(10, SECOND), 10, "{fields}");
        story.passes(0, SECOND / 10);
        story.reload(&kind_of(fields, 100));
        let passed = story.passes(180, SECOND / 100);
        assert!((80..=91).contains(&passed), "{fields}: {passed}");
    }
}

#[test]
fn a_rule_that_says_something_else_begins_cold() {
    let mut story = warmed();
    story.reload(&warm_up(30, 6, ""));
    // The second before has drained its full bucket a little.
    assert_eq!(story.seconds(1), [12]);
}
