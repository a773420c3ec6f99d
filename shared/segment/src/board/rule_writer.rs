//! The role that names resources and publishes rule sets.

use tidegate_abi::board::{directory, header, name_hash, record as field};
use tidegate_abi::geometry::LINE;

use super::{Board, Record, Slot, halves};
use crate::sync::{Ordering, Word, fence};

/// Why a resource got no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// Every slot is taken.
    #[error("all {0} resource slots are taken; raise pages.max_resources and restart")]
    Full(u32),
    /// The text of the names has no room.
    #[error(
        "the names of the resources fill their {0} bytes; raise pages.max_resources and restart"
    )]
    NamesFull(usize),
    /// Longer than a name may be.
    #[error("a name of {0} bytes is longer than 255")]
    NameTooLong(usize),
}

/// Names resources and publishes rule sets. There is one of it for each board.
#[derive(Debug)]
pub struct RuleWriter {
    board: Board,
    /// Where the text of the names begins, words from the start of the page.
    names: &'static [Word],
}

impl RuleWriter {
    pub(super) fn new(board: Board, words: &'static [Word]) -> Self {
        let map = board.geometry().board();
        let end = map.records.first().map_or(0, |records| records.start());
        Self {
            board,
            names: words.get(map.names.start()..end).unwrap_or(&[]),
        }
    }

    /// The board that is written.
    pub const fn board(&self) -> Board {
        self.board
    }

    /// Gives the next free slot to a resource, with the record it begins with. The slot is in both
    /// copies before anybody hears of it, so this needs no publish.
    ///
    /// # Errors
    /// No slot or no room for the name is left; nothing has changed then.
    pub fn add(&mut self, name: &str, record: &Record) -> Result<Slot, RuleFault> {
        let index = self.board.resources_used();
        let full = RuleFault::Full(self.board.geometry().resources());
        let place = usize::try_from(index).map_err(|_wide| full)?;
        let [entry, hash] = self.board.directory_lines().get(place).ok_or(full)?;
        let offset = self.add_name(name)?;
        let slot = Slot {
            index,
            generation: 1,
        };
        let record = Record {
            generation: slot.generation,
            ..*record
        };
        for copy in self.board.record_lines() {
            if let Some(line) = copy.get(place) {
                store(line, &record);
            }
        }
        let length = u32::try_from(name.len()).unwrap_or(0);
        let tag = u32::from(slot.generation) | length << 16;
        hash.store(name_hash(name.as_bytes()), Ordering::Relaxed);
        entry.store(halves(tag, offset), Ordering::Relaxed);
        let used = u64::from(index).saturating_add(1);
        // Release: pairs with the Acquire in `Board::resources_used`.
        self.board.header()[header::RESOURCES_USED].store(used, Ordering::Release);
        Ok(slot)
    }

    fn add_name(&self, name: &str) -> Result<u32, RuleFault> {
        if name.len() > tidegate_abi::NAME_MAX {
            return Err(RuleFault::NameTooLong(name.len()));
        }
        let room = self.names.len().saturating_mul(8);
        let full = RuleFault::NamesFull(room);
        let used = &self.board.header()[header::NAMES_USED];
        // Relaxed: this role alone writes it.
        let offset = usize::try_from(used.load(Ordering::Relaxed)).map_err(|_wide| full)?;
        let end = offset.saturating_add(name.len());
        if end > room {
            return Err(full);
        }
        for (at, byte) in (offset..).zip(name.bytes()) {
            if let Some(word) = self.names.get(at / 8) {
                let mut bytes = word.load(Ordering::Relaxed).to_le_bytes();
                if let Some(place) = bytes.get_mut(at % 8) {
                    *place = byte;
                }
                word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
        used.store(u64::try_from(end).unwrap_or(u64::MAX), Ordering::Relaxed);
        u32::try_from(offset).map_err(|_wide| full)
    }

    /// Publishes a rule set as one: writes the copy that is not in force, then names it.
    ///
    /// `record` gives the record of each slot in use. Killed anywhere in here, the agent has damaged
    /// nothing but the copy that nobody reads.
    pub fn publish(&mut self, mut record: impl FnMut(Slot) -> Record) {
        let word: &Word = &self.header()[header::RULES_GENERATION];
        // Relaxed: this role alone writes it.
        let next = word.load(Ordering::Relaxed).wrapping_add(1);
        let copy = self.board.copy(next);
        let used = self.board.resources_used();
        // Release fence: pairs with the Acquire fence in `Board::unchanged`; a reader that sees one
        // of the stores below also sees the generation that took this copy out of force.
        fence(Ordering::Release);
        for (index, line) in (0..used).zip(copy) {
            let generation = self.slot_generation(index);
            let record = record(Slot { index, generation });
            store(
                line,
                &Record {
                    generation,
                    ..record
                },
            );
        }
        // Release: pairs with the Acquire in `Board::rules_generation`.
        word.store(next, Ordering::Release);
    }

    fn slot_generation(&self, index: u32) -> u16 {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let entry = self.board.directory_lines().get(place);
        let word = entry.map_or(0, |entry| entry[directory::NAME].load(Ordering::Relaxed));
        (word & 0xffff) as u16
    }

    const fn header(&self) -> &'static [Word; header::LINES * LINE] {
        self.board.header()
    }
}

fn store(line: &[Word; field::WORDS], record: &Record) {
    for (word, value) in line.iter().zip(record.words()) {
        // Relaxed: the generation stored after them publishes them.
        word.store(value, Ordering::Relaxed);
        crash_point();
    }
}

/// A place where a test may end the process, to show that no reader is harmed by it.
#[inline]
fn crash_point() {
    #[cfg(all(test, not(loom)))]
    tests::crash_point();
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
