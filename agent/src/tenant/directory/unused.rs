//! Gives back memory of the ledger that no slot, rule or seat has.

use std::os::fd::OwnedFd;

use tidegate_segment::ledger::extent::InUse;
use tidegate_segment::os::memfd;

use super::super::seats::Seats;
use super::ResourceDirectory;

impl ResourceDirectory {
    /// Shows what is in use to `judge`, whose first answer is passed on; where its second is yes, the memory of all else
    /// is given back. Nobody gets a slot, a seat or room for rules meanwhile.
    pub fn give_back_unused<T>(
        &self,
        seats: &Seats,
        file: &OwnedFd,
        judge: impl FnOnce(InUse<'_>) -> (T, bool),
    ) -> T {
        let writer = self.writer.lock();
        let slots = writer.board().resources_used();
        let (free_lines, free_sets) = writer.room.free();
        seats.with_used(|used| {
            let (answer, wanted) = judge(InUse {
                slots,
                seats: used,
                free_lines,
                free_sets,
            });
            if wanted {
                let ledger = &writer.ledger;
                let rows = ledger.unused_rows(used, slots).into_iter();
                let rules = ledger.unused_by_rules(free_lines, free_sets);
                for words in rows.chain(rules).chain(ledger.unused_nodes(slots)) {
                    if let Err(errno) = memfd::give_back(file, words) {
                        tracing::debug!(event = "memory_not_given_back", %errno, "memory of the ledger is not given back");
                    }
                }
            }
            answer
        })
    }
}
