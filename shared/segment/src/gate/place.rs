//! Places in flight: announce, sum, retract.

use crate::board::Slot;
use crate::lane::Lane;
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
    /// A request of `count` needs that many places free and takes one.
    ///
    /// # Errors
    /// What is in flight, if there is no place.
    pub(super) fn take_place(&self, slot: Slot, count: u32, limit: u32) -> Result<Cell, u32> {
        let row = self
            .ledger
            .row(self.seat, self.generation, Lane::SHARED)
            .ok_or(0_u32)?;
        let cell = row.cell(slot).ok_or(0_u32)?;
        if !cell.used() {
            row.totals().mark_used();
        }
        let mut seen = 0;
        for _try in 0..TRIES {
            seen = self.ledger.node_inflight(&self.board, slot);
            if seen.saturating_add(count) > limit {
                break;
            }
            cell.take();
            // SeqCst: orders the announcement before the sum, for all callers in one order.
            fence(Ordering::SeqCst);
            let with_mine = self.ledger.node_inflight(&self.board, slot);
            if with_mine.saturating_sub(1).saturating_add(count) <= limit {
                return Ok(cell);
            }
            cell.give_back();
            core::hint::spin_loop();
        }
        Err(seen)
    }
}
