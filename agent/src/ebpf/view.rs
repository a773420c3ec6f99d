//! The maps of the programs as the tick reads them: mapped words, no call and no copy.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use tidegate_abi::kernel::counter;
use tidegate_abi::kernel::runqueue::{
    self, BUCKET_WORDS, BUCKETS, LENGTHS, SAMPLES, WAITED_NS, pair,
};
use tidegate_segment::os::map;
use tidegate_segment::page::Page;
use tidegate_segment::sync::{Ordering, Word};

use super::rung::Rung;
use crate::procfs::Lack;

/// How many waits there were of each length; the counts wrap.
pub(crate) type Histogram = [u32; BUCKETS as usize];

/// How large the maps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Slots; slot 0 is that of all groups that are not watched.
    pub(crate) slots: u32,
    /// CPUs that there may ever be.
    pub(crate) cpus: u32,
    /// CPUs whose run queue is sampled.
    pub(crate) sampled_cpus: u32,
}

/// Descriptors of the maps.
#[derive(Debug)]
pub(super) struct Maps<'m> {
    pub(super) runqueue: BorrowedFd<'m>,
    pub(super) preempted: BorrowedFd<'m>,
    pub(super) counters: BorrowedFd<'m>,
}

/// The maps of the programs that run now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    runqueue: Page,
    preempted: Page,
    counters: Page,
    pub(crate) extent: Extent,
    pub(crate) rung: Rung,
    /// Why no program watches the scheduler; `None` if some do.
    pub(crate) lack: Option<Lack>,
}

/// What the programs count of themselves, over all CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Runs on scheduler events.
    pub runs: u64,
    /// Of them those that were timed.
    pub timed: u64,
    /// Time that those took, ns.
    pub timed_ns: u64,
    /// Waits that were lost, because two tasks shared a place.
    pub waits_lost: u64,
    /// Records of pauses that found no room.
    pub ring_lost: u64,
    /// Records of pauses that were put into the ring.
    pub ring_sent: u64,
}

impl View {
    /// Maps the words.
    pub(super) fn map(maps: &Maps<'_>, extent: Extent, rung: Rung) -> Result<Self, Errno> {
        let Extent { slots, cpus, .. } = extent;
        let (slots, cpus) = (usize_of(slots), usize_of(cpus));
        let words = |factors: [usize; 3]| {
            factors
                .iter()
                .fold(1, |all, one| usize::saturating_mul(all, *one))
        };
        Ok(Self {
            runqueue: map::kernel_array(maps.runqueue, words([slots, cpus, runqueue::WORDS]))?,
            preempted: map::kernel_array(maps.preempted, words([slots, slots, cpus]))?,
            counters: map::kernel_array(maps.counters, words([1, cpus, counter::WORDS]))?,
            extent,
            rung,
            lack: None,
        })
    }

    /// The same, and why no program watches the scheduler.
    pub(super) const fn lacking(mut self, lack: Option<Lack>) -> Self {
        self.lack = lack;
        self
    }

    /// Gives the memory back. Who still reads sees zeros.
    pub(crate) fn retire(self) {
        for page in [self.runqueue, self.preempted, self.counters] {
            if let Err(errno) = map::retire(page) {
                tracing::debug!(event = "ebpf_map_left", %errno, "a map of unloaded eBPF programs stays in memory");
            }
        }
    }

    /// The records of a slot, one for each CPU.
    fn records(&self, slot: u32) -> impl Iterator<Item = &'static [Word; runqueue::WORDS]> {
        let cpus = usize_of(self.extent.cpus);
        let first = usize_of(slot).saturating_mul(cpus);
        let (records, _rest) = self.runqueue.words().as_chunks();
        records.iter().skip(first).take(cpus)
    }

    /// Time that tasks of a slot have waited, ns. It wraps as any sum of 64 bits.
    pub(crate) fn waited_ns(&self, slot: u32) -> u64 {
        let words = self.records(slot).map(|record| read(record, WAITED_NS));
        words.fold(0, u64::wrapping_add)
    }

    /// Looks at run queues that met a task of a slot, and the tasks they saw, summed.
    pub(crate) fn lengths(&self, slot: u32) -> (u64, u64) {
        self.records(slot).fold((0, 0), |(looks, lengths), record| {
            (
                read(record, SAMPLES).wrapping_add(looks),
                read(record, LENGTHS).wrapping_add(lengths),
            )
        })
    }

    /// Adds the waits of a slot to a histogram.
    pub(crate) fn add_waits(&self, slot: u32, to: &mut Histogram) {
        for record in self.records(slot) {
            let (pairs, _rest) = to.as_chunks_mut::<2>();
            for (pair, word) in pairs.iter_mut().zip(record.iter().take(BUCKET_WORDS)) {
                let word = word.load(Ordering::Relaxed);
                let [low, high] = pair;
                *low = low.wrapping_add(half(word));
                *high = high.wrapping_add(half(word >> 32));
            }
        }
    }

    /// How often tasks of slot `victim` had to make way for those of slot `by`.
    pub(crate) fn preempted(&self, victim: u32, by: u32) -> u64 {
        let Extent { slots, cpus, .. } = self.extent;
        let words = (0..cpus).map(|cpu| {
            let word = usize_of(pair(victim, by, cpu, slots, cpus));
            read(self.preempted.words(), word)
        });
        words.fold(0, u64::wrapping_add)
    }

    /// What the programs count of themselves.
    pub(crate) fn counters(&self) -> Counters {
        let (records, _rest) = self.counters.words().as_chunks::<{ counter::WORDS }>();
        let sum = |word| {
            let words = records.iter().map(|record| read(record, word));
            words.fold(0, u64::wrapping_add)
        };
        Counters {
            runs: sum(counter::RUNS),
            timed: sum(counter::TIMED),
            timed_ns: sum(counter::TIMED_NS),
            waits_lost: sum(counter::WAITS_LOST),
            ring_lost: sum(counter::RING_LOST),
            ring_sent: sum(counter::RING_SENT),
        }
    }

    /// A view over private memory, as large as `extent` says.
    #[cfg(test)]
    pub(crate) fn private(extent: Extent, rung: Rung) -> Self {
        let (slots, cpus) = (usize_of(extent.slots), usize_of(extent.cpus));
        Self {
            runqueue: Page::private(slots * cpus * runqueue::WORDS),
            preempted: Page::private(slots * slots * cpus),
            counters: Page::private(cpus * counter::WORDS),
            extent,
            rung,
            lack: None,
        }
    }

    /// The words that a program would write: of the run queues, of the pairs, of the counters.
    #[cfg(test)]
    pub(crate) fn words(&self) -> [&'static [Word]; 3] {
        [self.runqueue, self.preempted, self.counters].map(Page::words)
    }
}

/// Reads a word, relaxed: each is a count of its own, and nothing else is published by it.
fn read(words: &[Word], word: usize) -> u64 {
    words
        .get(word)
        .map_or(0, |word| word.load(Ordering::Relaxed))
}

/// The low half of a word.
fn half(word: u64) -> u32 {
    u32::try_from(word & 0xFFFF_FFFF).unwrap_or(0)
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXTENT: Extent = Extent {
        slots: 3,
        cpus: 2,
        sampled_cpus: 2,
    };

    #[test]
    fn words_of_all_cpus_are_summed_for_one_slot() {
        let view = View::private(EXTENT, Rung::Typed);
        let [runqueue, preempted, _counters] = view.words();
        for cpu in [2, 3] {
            let record = cpu * runqueue::WORDS;
            runqueue[record + WAITED_NS].store(10, Ordering::Relaxed);
            runqueue[record].store((7 << 32) | 5, Ordering::Relaxed);
        }
        assert_eq!((view.waited_ns(1), view.waited_ns(0)), (20, 0));
        let mut waits = [0; BUCKETS as usize];
        view.add_waits(1, &mut waits);
        assert_eq!((waits[0], waits[1], waits[2]), (10, 14, 0));
        for cpu in 0..2 {
            preempted[usize_of(pair(1, 2, cpu, 3, 2))].store(4, Ordering::Relaxed);
        }
        assert_eq!((view.preempted(1, 2), view.preempted(2, 1)), (8, 0));
    }

    proptest! {
        #[test]
        fn any_words_and_any_slot_are_read(words in prop::collection::vec(any::<u64>(), 240), slot: u32) {
            let view = View::private(EXTENT, Rung::Typed);
            for (place, word) in view.words()[0].iter().zip(&words) {
                place.store(*word, Ordering::Relaxed);
            }
            let mut waits = [u32::MAX; BUCKETS as usize];
            view.add_waits(slot, &mut waits);
            let _told = (view.waited_ns(slot), view.lengths(slot), view.preempted(slot, slot));
        }
    }
}
