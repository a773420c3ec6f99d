//! What a new agent does with a ledger that it takes up from the life before.

use tidegate_abi::board::SeatWord;
use tidegate_abi::ledger::{CellWord, cell as cell_field, total};

use super::{Ledger, zero};
use crate::board::{Board, Slot};
use crate::lane::Lane;
use crate::sync::Word;

impl Ledger {
    /// Ends what a seat has in flight, on so many slots: whoever held it is gone, and the seat goes on. Its counts
    /// stay.
    pub fn end_held(&self, seat: u32, word: SeatWord, slots: u32) {
        for lane in 0..self.geometry.lanes() {
            let Some(row) = self.geometry.row(seat, lane) else {
                return;
            };
            if !self.lane_used(row, word) {
                continue;
            }
            for slot in 0..slots {
                let cell = self
                    .geometry
                    .cell(row, slot)
                    .and_then(|index| self.cells.get(index));
                none_held(cell.and_then(|cell| cell.get(cell_field::INFLIGHT)));
            }
            let totals = self.totals.get(row);
            none_held(totals.and_then(|totals| totals.get(total::INFLIGHT)));
        }
    }

    /// Requests in flight of a seat, on all slots of a board.
    pub fn seat_holds(&self, board: &Board, seat: u32, word: SeatWord) -> u64 {
        let mut name = [0; 256];
        let mut holds = 0_u64;
        for index in 0..board.resources_used() {
            if let Some((slot, _name)) = board.name(index, &mut name) {
                let own = self.seat_node_inflight(seat, word, slot);
                holds = holds.saturating_add(u64::from(own));
            }
        }
        holds
    }

    /// Counts in a seat, of the writer's own, what others have in flight on a node who do not count here themselves:
    /// so many now where it was so many. One thread at a time may do so.
    pub fn count_for_others(
        &self,
        (seat, generation): (u32, u32),
        slot: Slot,
        [before, now]: [u32; 2],
    ) {
        let row = self.row(seat, generation, Lane::SHARED);
        let Some((row, cell)) = row.and_then(|row| Some((row, row.cell(slot)?))) else {
            return;
        };
        if !cell.used() {
            row.totals().mark_used();
        }
        let more = u64::from(now).wrapping_sub(u64::from(before));
        cell.add_inflight(more.wrapping_mul(CellWord::ONE));
    }

    /// Forgets what scopes counted: scopes of another life are other ones.
    pub fn clear_scopes(&self) {
        self.scopes.iter().flatten().for_each(zero);
    }
}

/// The word's generations stay.
fn none_held(word: Option<&Word>) {
    let generations = CellWord::ONE - 1;
    let _ended: Option<()> = word.and_then(|word| word.step(|seen| ((), seen & generations)));
}
