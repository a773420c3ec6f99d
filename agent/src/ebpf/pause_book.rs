//! Books pauses to the slots of their processes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::pauses::{Pause, Reason};
use super::report::{PauseTable, PauseTotals};

/// For how long a pause counts as one of the last.
const RECENT_NS: u64 = 10_000_000_000;
/// Most recent pauses of one slot that are remembered; of more the longest is still right for the
/// ones that are.
const RECENT_MAX: usize = 4096;

/// The pauses of each slot.
#[derive(Debug)]
pub(super) struct PauseBook {
    table: Arc<PauseTable>,
    slots: BTreeMap<u32, Booked>,
}

#[derive(Debug, Default)]
struct Booked {
    totals: PauseTotals,
    /// Ends and lengths of the last collections, the oldest first.
    recent: VecDeque<(u64, u64)>,
}

impl PauseBook {
    /// A book for this table.
    pub(super) const fn new(table: Arc<PauseTable>) -> Self {
        Self {
            table,
            slots: BTreeMap::new(),
        }
    }

    /// Books a pause to a slot.
    pub(super) fn book(&mut self, slot: u32, pause: Pause) {
        let booked = self.slots.entry(slot).or_default();
        let totals = &mut booked.totals;
        let (count, sum) = match pause.reason {
            Reason::Gc => (&mut totals.collections, &mut totals.collecting_ns),
            Reason::Safepoint => (&mut totals.safepoints, &mut totals.stopped_ns),
        };
        *count = count.saturating_add(1);
        *sum = sum.saturating_add(pause.length_ns);
        if pause.reason == Reason::Gc {
            if booked.recent.len() >= RECENT_MAX {
                booked.recent.pop_front();
            }
            booked.recent.push_back((pause.end_ns, pause.length_ns));
        }
        booked.show(slot, pause.end_ns, &self.table);
    }

    /// Time has passed: what is no longer recent is forgotten.
    pub(super) fn turn(&mut self, now_ns: u64) {
        for (slot, booked) in &mut self.slots {
            booked.show(*slot, now_ns, &self.table);
        }
    }

    /// The slot has another group.
    pub(super) fn clear(&mut self, slot: u32) {
        self.slots.remove(&slot);
        self.table.set(slot, PauseTotals::default());
    }
}

impl Booked {
    fn show(&mut self, slot: u32, now_ns: u64, table: &PauseTable) {
        while let Some((end_ns, _length_ns)) = self.recent.front()
            && now_ns.saturating_sub(*end_ns) > RECENT_NS
        {
            self.recent.pop_front();
        }
        let lengths = self.recent.iter().map(|(_end_ns, length_ns)| *length_ns);
        self.totals.longest_ns = lengths.max().unwrap_or(0);
        table.set(slot, self.totals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gc(end_ns: u64, length_ns: u64) -> Pause {
        Pause {
            process: 1,
            reason: Reason::Gc,
            end_ns,
            length_ns,
        }
    }

    #[test]
    fn sums_stay_and_the_longest_is_forgotten_after_ten_seconds() {
        let table = Arc::new(PauseTable::new(4));
        let mut book = PauseBook::new(Arc::clone(&table));
        book.book(2, gc(1, 900));
        book.book(2, gc(RECENT_NS, 30));
        let totals = table.of(2);
        assert_eq!((totals.collections, totals.collecting_ns), (2, 930));
        assert_eq!(totals.longest_ns, 900);
        book.turn(RECENT_NS + 2);
        assert_eq!(table.of(2).longest_ns, 30);
        assert_eq!(table.of(2).collections, 2);
        book.clear(2);
        assert_eq!(table.of(2), PauseTotals::default());
        assert_eq!(table.of(99), PauseTotals::default());
    }

    #[test]
    fn safepoints_are_no_collections() {
        let table = Arc::new(PauseTable::new(1));
        let mut book = PauseBook::new(Arc::clone(&table));
        book.book(
            0,
            Pause {
                reason: Reason::Safepoint,
                ..gc(5, 5)
            },
        );
        let totals = table.of(0);
        assert_eq!((totals.safepoints, totals.stopped_ns), (1, 5));
        assert_eq!((totals.collections, totals.longest_ns), (0, 0));
    }
}
