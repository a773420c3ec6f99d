//! What a resource that has warmed up still is after a reload, on a clock that the test moves.

use std::cell::Cell;

use tidegate_abi::decision::Outcome;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Request, Step, Verdict};
use tidegate_segment::lane::Lane;

use super::Tenant;
use super::limit::tests::limits;
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
        let published = self.tenant.directory().publish(limits(rules), at_ns);
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
            match gate.enter(&self.clock, Lane::SHARED, slot, Request::default()) {
                Step::Done(Verdict::Admitted(pass)) => {
                    gate.exit(&self.clock, Lane::SHARED, pass, Outcome::Ok);
                    1
                }
                Step::Done(Verdict::Refused(_)) => 0,
                other @ (Step::Done(Verdict::Stale) | Step::Wait(_)) => panic!("{other:?}"),
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
fn a_rule_that_says_something_else_begins_cold() {
    let mut story = warmed();
    story.reload(&warm_up(30, 6, ""));
    // The second before has drained its full bucket a little.
    assert_eq!(story.seconds(1), [12]);
}
