//! The times of a node: how long its requests took, as a histogram that all processes share, and its waits.
//!
//! What is over soonest is not counted here, so calls that take no longer than a count pay one comparison. The
//! others can afford an addition that other threads may be at as well: they took a thousand times as long.

use tidegate_abi::decision::Outcome;
use tidegate_abi::ledger::times as field;

use super::Ledger;
use crate::board::Slot;
use crate::sync::{Ordering, Word};

/// Least response time that has a word, ns.
const LEAST_NS: u64 = 1 << field::FIRST_BIT;

/// How long the requests of a node took that ended well, and how often they waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeTimes {
    /// Those of each bucket but the first, which has all other successes; see [`NodeTimes::bounds_ns`].
    pub took: [u64; field::BUCKETS],
    /// How often a rule let a request wait.
    pub waited: u64,
}

impl NodeTimes {
    /// Upper ends of the buckets in ns, that of the first included; the last bucket has none.
    pub fn bounds_ns() -> impl Iterator<Item = u64> {
        let bits = field::FIRST_BIT..;
        bits.take(field::BUCKETS)
            .map(|bit| 1_u64.checked_shl(bit).unwrap_or(u64::MAX))
    }
}

impl Ledger {
    /// Counts the response time of a request that stands for `count`, if it ended well.
    #[inline(always)]
    pub fn count_time(&self, slot: Slot, (outcome, rt_ns): (Outcome, u64), count: u32) {
        if rt_ns >= LEAST_NS && matches!(outcome, Outcome::Ok) {
            self.count_long(slot, rt_ns, count);
        }
    }

    /// Told to be cold although it need not be: what it needs is then saved on its way alone.
    #[cold]
    #[inline(never)]
    fn count_long(&self, slot: Slot, rt_ns: u64, count: u32) {
        let bit = rt_ns.checked_ilog2().unwrap_or(0);
        let place = usize::try_from(bit.saturating_sub(field::FIRST_BIT)).unwrap_or(0);
        self.add_time(slot, place.min(field::BUCKETS.saturating_sub(1)), count);
    }

    /// Counts that a rule lets a request wait.
    pub fn count_wait(&self, slot: Slot) {
        self.add_time(slot, field::WAITED, 1);
    }

    fn add_time(&self, slot: Slot, place: usize, count: u32) {
        let line = self.times_of(slot.index);
        if let Some(word) = line.and_then(|line| line.get(place)) {
            word.count(u64::from(count));
        }
    }

    /// The times of a node.
    pub fn times(&self, slot: Slot) -> NodeTimes {
        let mut times = NodeTimes::default();
        let Some(line) = self.times_of(slot.index) else {
            return times;
        };
        // Relaxed: counts for people.
        let read = |word: &Word| word.load(Ordering::Relaxed);
        for (sum, word) in times.took.iter_mut().zip(line) {
            *sum = read(word);
        }
        times.waited = read(&line[field::WAITED]);
        times
    }

    fn times_of(&self, slot: u32) -> Option<&'static [Word; field::WORDS]> {
        self.times.get(usize::try_from(slot).ok()?)
    }

    /// Zeroes the times of a node; of one that has none nothing is written, which would only allocate them.
    pub(super) fn clear_times(&self, slot: u32) {
        let words = self.times_of(slot).into_iter().flatten();
        words
            .filter(|word| word.load(Ordering::Relaxed) != 0)
            .for_each(super::zero);
    }
}
