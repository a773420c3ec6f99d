//! Whether the pages say what the diaries say.

use tidegate_segment::clock::Clock as _;
use tidegate_segment::ledger::NodeCounts;

use super::Host;
use super::past::{About, OfPlace};
use super::tenure::Tenure;
use crate::diary::Count;
use crate::resource::{
    LIMITS, PLACES, RESOURCES, RUNNING, RUNNING_SETS, TOKEN_SETS, TOKENS, VALUES, bucket, value,
};

impl Host {
    pub(super) fn compare(&mut self) {
        for place in 0..PLACES {
            self.compare_limits(place);
            match self.tenures[place] {
                Tenure::Held(_) => {
                    self.compare_counts(place);
                    self.compare_window(place);
                }
                // Some of what was under way when the slot was taken back counted there, and some did not.
                Tenure::Closed(_) => {}
                Tenure::Clean(_) => self.compare_with_nothing(place),
            }
        }
        for value in 0..VALUES {
            self.compare_value(value);
        }
    }

    /// A count of the dead and the living.
    fn all(&self, dead: About, count: Count) -> About {
        let living: u64 = self.diaries.iter().map(|diary| diary.get(count)).sum();
        About {
            least: dead.least + living,
            ..dead
        }
    }

    fn what(&self, name: &str, number: usize) -> String {
        format!("round {}, {name} {number}", self.round)
    }

    fn counts(&self, place: usize) -> NodeCounts {
        let slot = self.tenures[place].slot();
        self.ledger.node_counts(&self.board, slot)
    }

    fn window(&self, place: usize) -> u64 {
        let slot = self.tenures[place].slot();
        let node = self.ledger.node(slot.index).expect("a node");
        u64::from(node.window(self.stage.now_ns()).sum())
    }

    /// Nobody gets over a limit, whose ever the slot is.
    fn compare_limits(&self, place: usize) {
        let (inflight, passes) = (self.counts(place).inflight, self.window(place));
        if let Some(limit) = LIMITS[place].inflight {
            assert!(
                inflight <= u64::from(limit),
                "{inflight} in flight of {limit}"
            );
        }
        if let Some(limit) = LIMITS[place].passes {
            assert!(
                passes <= u64::from(limit),
                "{passes} in a window of {limit}"
            );
        }
    }

    /// A slot that rested and was zeroed is nobody's, whoever still ends what was begun there.
    fn compare_with_nothing(&self, place: usize) {
        let what = self.what("the clean slot of place", place);
        assert_eq!(self.counts(place), NodeCounts::default(), "{what}");
        assert_eq!(self.window(place), 0, "{what}");
    }

    fn compare_counts(&mut self, place: usize) {
        let mut counts = self.counts(place);
        let inflight = counts.inflight;
        counts.keep(&self.past.places[place].kept);
        let held = self.all(About::default(), Count::Held(place));
        held.check(&self.what("in flight of place", place), inflight);
        let OfPlace {
            passed,
            refused,
            ended,
            ..
        } = &self.past.places[place];
        let all_refused: u64 = counts.refused.iter().sum();
        let ends = (*ended, Count::Ended(place), counts.success);
        let passes = (*passed, Count::Passed(place), counts.passed);
        let refusals = (*refused, Count::Refused(place), all_refused);
        let turned_out = [passes, refusals, ends].map(|(dead, count, seen)| {
            // The node of an origin or context counts what is in flight there and what ends, and passes in its window.
            let counted = place < RESOURCES || matches!(count, Count::Ended(_));
            let what = self.what(&format!("{count:?} of place"), place);
            counted.then(|| self.all(dead, count).check(&what, seen))
        });
        let past = &mut self.past.places[place];
        let dead = [&mut past.passed, &mut past.refused, &mut past.ended];
        for (about, so) in dead.into_iter().zip(turned_out) {
            about.settle(so.unwrap_or(0));
        }
    }

    /// The window has what passed in this round and the one before.
    fn compare_window(&mut self, place: usize) {
        let dead = self.past.places[place].noted;
        let living = self.all(About::default(), Count::Passed(place)).least;
        self.past.places[place].rounds[0].passed = dead + living;
        let limit = LIMITS[place].passes;
        if limit.is_none() && place < RESOURCES {
            return;
        }
        let seen = self.window(place);
        let [this, last, before] = self.past.places[place].rounds;
        let window = About {
            least: this.passed - before.passed,
            doubt: this.doubt + last.doubt,
        };
        window.check(&self.what("window of place", place), seen);
        let full = self.all(About::default(), Count::WindowFull(place)).least;
        assert!(
            full == 0 || Some(seen) == limit.map(u64::from),
            "refused at {seen} of {limit:?}"
        );
    }

    fn compare_value(&mut self, number: usize) {
        let key = |sets| {
            self.ledger
                .value_key(sets, value(number))
                .expect("there are sets")
        };
        let running = self.ledger.running(&self.board, key(RUNNING_SETS));
        let held = self.all(About::default(), Count::ValueHeld(number));
        held.check(&self.what("calls of value", number), running);
        assert!(
            running <= u64::from(RUNNING),
            "{running} calls of {RUNNING}"
        );
        let now_ns = self.stage.now_ns();
        let look = |state| (bucket().tokens(state, now_ns), None);
        let left = self.ledger.step_value(key(TOKEN_SETS), |_state| 0, look);
        let taken = u64::from(TOKENS - left.expect("nobody else is there"));
        let took = self.all(self.past.value_took[number], Count::ValueTook(number));
        let so = took.check(&self.what("tokens of value", number), taken);
        self.past.value_took[number].settle(so);
    }
}
