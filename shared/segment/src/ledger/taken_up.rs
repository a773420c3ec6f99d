//! What a new agent does with a ledger that it takes up from the life before.

use tidegate_abi::board::SeatWord;
use tidegate_abi::ledger::{CellWord, cell as cell_field, total};

use super::{Ledger, zero};
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
