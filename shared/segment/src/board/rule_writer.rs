//! The role that names resources and publishes rule sets.

use tidegate_abi::board::{directory, header};
use tidegate_abi::geometry::LINE;

use super::{Board, BoardRule, PoolSpan, ResourceRecord, Runs, Slot, SystemRules};
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
    /// The sets of values have no room.
    #[error(
        "the values of hot-parameter rules need more than {0} sets; raise pages.max_resources and restart"
    )]
    ValuesFull(usize),
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
pub struct CompiledRules<'a> {
    /// The rule table; records name runs of it.
    pub rules: &'a [BoardRule],
    /// The words that rules refer to.
    pub pool: &'a [u64],
    /// The system rules, merged.
    pub system: Option<SystemRules>,
}

/// Names resources and publishes rule sets. There is one of it for each board.
#[derive(Debug)]
pub struct RuleWriter {
    pub(super) board: Board,
    /// Places of the table in use, in each copy.
    pub(super) rules_used: [usize; 2],
    /// Words of the pool in use, in each copy.
    pool_used: [usize; 2],
    /// The text of the names.
    pub(super) names: &'static [Word],
    /// Which bytes of it are free.
    pub(super) text: Runs,
}

impl RuleWriter {
    pub(super) fn new(board: Board, words: &'static [Word]) -> Self {
        let map = board.geometry().board();
        let end = map.records.first().map_or(0, |records| records.start());
        let names = words.get(map.names.start()..end).unwrap_or(&[]);
        Self {
            board,
            rules_used: [0; 2],
            pool_used: [0; 2],
            names,
            text: Runs::of(names.len().saturating_mul(8)),
        }
    }

    /// The board that is written.
    pub const fn board(&self) -> Board {
        self.board
    }

    /// Whether less than a quarter of the table or of the pool is left. Names that come take from both, and only
    /// a publish gives back what names took that went.
    pub fn is_short(&self) -> bool {
        let (_records, table, pool) = self.board.copy(0);
        let short = |used: [usize; 2], all: usize| {
            let used = used.into_iter().max().unwrap_or(0);
            all.saturating_sub(used) < all / 4
        };
        short(self.rules_used, table.len()) || short(self.pool_used, pool.len())
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
    pub fn add_to_pool(&mut self, words: &[u64]) -> Result<PoolSpan, RuleFault> {
        let start = usize::try_from(self.pool_used()).unwrap_or(usize::MAX);
        let end = start.saturating_add(words.len());
        for generation in 0..2 {
            let (_records, _table, pool) = self.board.copy(generation);
            let place = pool.get(start..end);
            store(place.ok_or(RuleFault::PoolFull(pool.len()))?, words);
        }
        self.pool_used = [end; 2];
        let narrow = |wide: usize| u32::try_from(wide).unwrap_or(u32::MAX);
        Ok(PoolSpan {
            start: narrow(start),
            length: narrow(words.len()),
        })
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
        set: CompiledRules<'_>,
        mut record: impl FnMut(Slot) -> ResourceRecord,
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
            let record = ResourceRecord {
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

    pub(super) fn used_mut(&mut self, generation: u64) -> Option<&mut usize> {
        self.rules_used.get_mut(usize::from(generation & 1 != 0))
    }

    fn slot_generation(&self, index: u32) -> u16 {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let entry = self.board.directory_lines().get(place);
        let word = entry.map_or(0, |entry| entry[directory::NAME].load(Ordering::Relaxed));
        (word & 0xffff) as u16
    }

    pub(super) const fn header(&self) -> &'static [Word; header::LINES * LINE] {
        self.board.header()
    }
}

/// The rules of a record, as far as they are in the table.
fn rules_of<'r>(record: &ResourceRecord, table: &'r [BoardRule]) -> &'r [BoardRule] {
    let first = usize::try_from(record.rules_first).unwrap_or(usize::MAX);
    let rules = usize::try_from(record.rules).unwrap_or(0);
    let run = table.get(first..first.saturating_add(rules));
    run.unwrap_or(&[])
}

pub(super) fn store(words: &[Word], values: &[u64]) {
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
