//! Places in flight: announce, sum, retract.

use crate::board::Slot;
use crate::ledger::Cell;
use crate::sync::{Ordering, fence};

use super::Gate;

/// Callers that announced at the same time may all have to retract although one of them would have
/// fitted; each tries again this often.
const TRIES: u32 = 16;

impl Gate {
    /// Reserves a place in flight on a node: announces it in the seat's own cell, sums all seats,
    /// retracts if that is over the limit. Of any two callers the one that announces later sees the
    /// other, so the limit is never exceeded.
    ///
    /// A request of `count` needs that many places free and takes one. Where callers are refused (`looks`), it sums
    /// before it announces as well: an announcement that is retracted is in the way of others while it stands.
    ///
    /// # Errors
    /// What is in flight, if there is no place.
    pub(super) fn take_place(
        &self,
        slot: Slot,
        count: u32,
        limit: u32,
        looks: bool,
    ) -> Result<Cell, u32> {
        let row = self.rows.shared_row().ok_or(0_u32)?;
        let cell = row.cell(slot).ok_or(0_u32)?;
        if !cell.used() {
            row.totals().mark_used();
        }
        let (mut seen, mut looks) = (0, looks);
        for _try in 0..TRIES {
            if looks {
                seen = self.ledger.node_inflight(&self.board, slot);
                if seen.saturating_add(count) > limit {
                    break;
                }
            }
            cell.take();
            // SeqCst: orders the announcement before the sum, for all callers in one order.
            fence(Ordering::SeqCst);
            let others = self
                .ledger
                .node_inflight(&self.board, slot)
                .saturating_sub(1);
            if others.saturating_add(count) <= limit {
                return Ok(cell);
            }
            cell.give_back();
            (seen, looks) = (others, true);
            core::hint::spin_loop();
        }
        Err(seen)
    }
}
