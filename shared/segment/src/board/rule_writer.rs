//! The role that names resources and publishes rule sets.

use tidegate_abi::board::{directory, header, name_hash};
use tidegate_abi::geometry::LINE;

use super::{Board, Record, Rule, Slot, Span, SystemRules, halves};
use crate::sync::{Ordering, Word, fence, peek, put};

/// Why a resource got no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// Every slot is taken.
    #[error("all {0} resource slots are taken; raise pages.max_resources and restart")]
    Full(u32),
    /// The rule table has no room.
    #[error("the rules need more than {0} places; raise pages.max_resources and restart")]
    RulesFull(usize),
    /// The pool has no room.
    #[error(
        "origins and items of the rules need more than {0} words; raise pages.max_resources and restart"
    )]
    PoolFull(usize),
    /// The text of the names has no room.
    #[error(
        "the names of the resources fill their {0} bytes; raise pages.max_resources and restart"
    )]
    NamesFull(usize),
    /// Longer than a name may be.
    #[error("a name of {0} bytes is longer than 255")]
    NameTooLong(usize),
}

/// A rule set, compiled.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuleSet<'a> {
    /// The rule table; records name runs of it.
    pub rules: &'a [Rule],
    /// The words that rules refer to.
    pub pool: &'a [u64],
    /// The system rules, merged.
    pub system: Option<SystemRules>,
}

/// Names resources and publishes rule sets. There is one of it for each board.
#[derive(Debug)]
pub struct RuleWriter {
    board: Board,
    /// Places of the table in use, in each copy.
    rules_used: [usize; 2],
    /// Words of the pool in use, in each copy.
    pool_used: [usize; 2],
    /// Where the text of the names begins, words from the start of the page.
    names: &'static [Word],
}

impl RuleWriter {
    pub(super) fn new(board: Board, words: &'static [Word]) -> Self {
        let map = board.geometry().board();
        let end = map.records.first().map_or(0, |records| records.start());
        Self {
            board,
            rules_used: [0; 2],
            pool_used: [0; 2],
            names: words.get(map.names.start()..end).unwrap_or(&[]),
        }
    }

    /// The board that is written.
    pub const fn board(&self) -> Board {
        self.board
    }

    /// Gives the next free slot to a resource, with the record and the rules it begins with. The slot
    /// is in both copies before anybody hears of it, so this needs no publish.
    ///
    /// `rules` refer to words of the pool of the set in force, where they need any.
    ///
    /// # Errors
    /// No slot, no place in the table or no room for the name is left; nothing has changed then.
    pub fn add(&mut self, name: &str, record: &Record, rules: &[Rule]) -> Result<Slot, RuleFault> {
        let index = self.board.resources_used();
        let full = RuleFault::Full(self.board.geometry().resources());
        let place = usize::try_from(index).map_err(|_wide| full)?;
        let [entry, hash] = self.board.directory_lines().get(place).ok_or(full)?;
        self.check_table(rules.len())?;
        let offset = self.add_name(name)?;
        let slot = Slot {
            index,
            generation: 1,
        };
        for generation in 0..2 {
            self.add_to_copy(generation, place, record, rules);
        }
        let length = u32::try_from(name.len()).unwrap_or(0);
        let tag = u32::from(slot.generation) | length << 16;
        hash.store(name_hash(name.as_bytes()), Ordering::Relaxed);
        entry.store(halves(tag, offset), Ordering::Relaxed);
        let used = u64::from(index).saturating_add(1);
        if let Some(word) = self.header().get(header::RESOURCES_USED) {
            // Release: pairs with the Acquire in `Board::resources_used`.
            word.store(used, Ordering::Release);
        }
        Ok(slot)
    }

    /// Where the next words of [`Self::add_to_pool`] will be.
    pub fn pool_used(&self) -> u32 {
        let used = self.pool_used.into_iter().max().unwrap_or(0);
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// Puts words into the pool for rules that are about to be added, and says where they are.
    ///
    /// # Errors
    /// The pool has no room.
    pub fn add_to_pool(&mut self, words: &[u64]) -> Result<Span, RuleFault> {
        let start = usize::try_from(self.pool_used()).unwrap_or(usize::MAX);
        let end = start.saturating_add(words.len());
        for generation in 0..2 {
            let (_records, _table, pool) = self.board.copy(generation);
            let place = pool.get(start..end);
            store(place.ok_or(RuleFault::PoolFull(pool.len()))?, words);
        }
        self.pool_used = [end; 2];
        let narrow = |wide: usize| u32::try_from(wide).unwrap_or(u32::MAX);
        Ok(Span {
            start: narrow(start),
            length: narrow(words.len()),
        })
    }

    /// Whether both copies have room for so many rules more.
    fn check_table(&self, more: usize) -> Result<(), RuleFault> {
        let room = self.board.geometry().rules();
        let fits = |used: &usize| used.saturating_add(more) <= room;
        if self.rules_used.iter().all(fits) {
            Ok(())
        } else {
            Err(RuleFault::RulesFull(room))
        }
    }

    fn add_to_copy(&mut self, generation: u64, place: usize, record: &Record, rules: &[Rule]) {
        let (records, table, _pool) = self.board.copy(generation);
        let Some(used) = self.used_mut(generation) else {
            return;
        };
        let first = *used;
        *used = first.saturating_add(rules.len());
        for (line, rule) in table.iter().skip(first).zip(rules) {
            store(line, &rule.words());
        }
        let record = Record {
            generation: 1,
            rules_first: u32::try_from(first).unwrap_or(u32::MAX),
            rules: u32::try_from(rules.len()).unwrap_or(0),
            ..*record
        };
        if let Some(line) = records.get(place) {
            store(line, &record.words_with(rules));
        }
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
    /// nothing but the copy that nobody reads. The caller leaves at least 10 ms between two publishes,
    /// since decisions that began on the copy before may still be reading it.
    ///
    /// # Errors
    /// The table or the pool has no room for the set; nothing has changed then.
    pub fn publish(
        &mut self,
        set: RuleSet<'_>,
        mut record: impl FnMut(Slot) -> Record,
    ) -> Result<(), RuleFault> {
        let header = self.header();
        // Relaxed: this role alone writes it.
        let next = peek(header, header::RULES_GENERATION).wrapping_add(1);
        let (records, table, pool) = self.board.copy(next);
        if set.rules.len() > table.len() {
            return Err(RuleFault::RulesFull(table.len()));
        }
        if set.pool.len() > pool.len() {
            return Err(RuleFault::PoolFull(pool.len()));
        }
        put(header, header::RULES_WRITING, next);
        // Release fence: pairs with the Acquire fence in `View::is_whole`; a reader that sees one of
        // the stores below also sees that this copy was begun.
        fence(Ordering::Release);
        for (index, line) in (0..self.board.resources_used()).zip(records) {
            let generation = self.slot_generation(index);
            let record = Record {
                generation,
                ..record(Slot { index, generation })
            };
            store(line, &record.words_with(rules_of(&record, set.rules)));
        }
        for (line, rule) in table.iter().zip(set.rules) {
            store(line, &rule.words());
        }
        store(pool, set.pool);
        let [even, odd] = header::SYSTEM_SETS;
        let place = if next & 1 == 0 { even } else { odd };
        let system = set.system.map_or([0; 8], |system| system.words());
        store(header.get(place..).unwrap_or(&[]), &system);
        if let Some(used) = self.used_mut(next) {
            *used = set.rules.len();
        }
        if let Some(used) = self.pool_used.get_mut(usize::from(next & 1 != 0)) {
            *used = set.pool.len();
        }
        // Release: pairs with the Acquire in `Board::rules_generation`.
        if let Some(word) = header.get(header::RULES_GENERATION) {
            word.store(next, Ordering::Release);
        }
        Ok(())
    }

    fn used_mut(&mut self, generation: u64) -> Option<&mut usize> {
        self.rules_used.get_mut(usize::from(generation & 1 != 0))
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

/// The rules of a record, as far as they are in the table.
fn rules_of<'r>(record: &Record, table: &'r [Rule]) -> &'r [Rule] {
    let first = usize::try_from(record.rules_first).unwrap_or(usize::MAX);
    let rules = usize::try_from(record.rules).unwrap_or(0);
    let run = table.get(first..first.saturating_add(rules));
    run.unwrap_or(&[])
}

fn store(words: &[Word], values: &[u64]) {
    for (word, value) in words.iter().zip(values) {
        // Relaxed: the generation stored after them publishes them.
        word.store(*value, Ordering::Relaxed);
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
