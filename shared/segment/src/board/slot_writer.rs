//! Gives slots to resources, and takes them back.

use tidegate_abi::board::{Needs, header, name_hash, record as field};

use super::rule_writer::store;
use super::{BoardRule, PoolSpan, ResourceRecord, RuleFault, RuleWriter, Slot, halves, split};
use crate::sync::{Ordering, Word};

impl RuleWriter {
    /// Gives the next free slot to a resource, with the record and the rules it begins with. The slot
    /// is in both copies before anybody hears of it, so this needs no publish.
    ///
    /// `rules` refer to words of the pool of the set in force, where they need any.
    ///
    /// # Errors
    /// No slot, no place in the table or no room for the name is left; nothing has changed then.
    pub fn add(
        &mut self,
        name: &str,
        record: &ResourceRecord,
        rules: &[BoardRule],
    ) -> Result<Slot, RuleFault> {
        let index = self.board.resources_used();
        let slot = Slot {
            index,
            generation: 1,
        };
        self.give(slot, name, record, rules)?;
        self.count_slot(slot);
        Ok(slot)
    }

    fn count_slot(&self, slot: Slot) {
        let used = u64::from(slot.index).saturating_add(1);
        if let Some(word) = self.header().get(header::RESOURCES_USED) {
            // Release: pairs with the Acquire in `Board::resources_used`.
            word.store(used, Ordering::Release);
        }
    }

    /// Puts the next slot back as another board had it: under its name, without rules; or taken back, where the name
    /// is empty.
    ///
    /// # Errors
    /// As for [`RuleWriter::add`], and where the slot is not the next one.
    pub fn restore(&mut self, slot: Slot, name: &str) -> Result<(), RuleFault> {
        if slot.index != self.board.resources_used() {
            return Err(RuleFault::Full(self.board.geometry().resources()));
        }
        self.give(slot, name, &ResourceRecord::default(), &[])?;
        self.count_slot(slot);
        Ok(())
    }

    /// Gives a slot that [`RuleWriter::close`] took back to another resource, like [`RuleWriter::add`]. The
    /// caller has cleared what was counted there.
    ///
    /// # Errors
    /// No place in the table or no room for the name is left; nothing has changed then.
    pub fn reopen(
        &mut self,
        closed: Slot,
        name: &str,
        record: &ResourceRecord,
        rules: &[BoardRule],
    ) -> Result<(), RuleFault> {
        self.give(closed, name, record, rules)
    }

    /// Takes a slot back: from now on no decision begins on it, and the permits and decisions that began
    /// before count on it no more. Returns it as it will be given next; that must be so much later that
    /// no decision which began before can still be under way.
    pub fn close(&mut self, slot: Slot) -> Slot {
        let closed = Slot {
            // 0 is nobody's.
            generation: slot.generation.checked_add(1).unwrap_or(1),
            ..slot
        };
        let Ok(place) = usize::try_from(slot.index) else {
            return closed;
        };
        for generation in 0..2 {
            let (records, _table, _pool) = self.board.copy(generation);
            if let Some(line) = records.get(place) {
                // One word says that nothing is in force, and for whom; the others mean nothing then, and
                // whoever has read the word before finds them as they were.
                let head = halves(Needs::default().0, u32::from(closed.generation));
                line[field::HEAD].store(head, Ordering::Relaxed);
            }
        }
        if let Some([entry, hash]) = self.board.directory_lines().get(place) {
            hash.store(0, Ordering::Relaxed);
            let (tag, start) = split(entry.load(Ordering::Relaxed));
            let length = tag >> 16;
            self.text.give_back(PoolSpan { start, length });
            entry.store(halves(u32::from(closed.generation), 0), Ordering::Relaxed);
        }
        closed
    }

    fn give(
        &mut self,
        slot: Slot,
        name: &str,
        record: &ResourceRecord,
        rules: &[BoardRule],
    ) -> Result<(), RuleFault> {
        let full = RuleFault::Full(self.board.geometry().resources());
        let place = usize::try_from(slot.index).map_err(|_wide| full)?;
        let [entry, hash] = self.board.directory_lines().get(place).ok_or(full)?;
        self.check_table(rules.len())?;
        let text = self.add_name(name)?;
        for copy in 0..2 {
            self.add_to_copy(copy, slot, record, rules);
        }
        let tag = u32::from(slot.generation) | text.length << 16;
        entry.store(halves(tag, text.start), Ordering::Relaxed);
        // Release: pairs with the Acquire in `Board::find`, for a slot that had another name.
        let named = if name.is_empty() {
            0
        } else {
            name_hash(name.as_bytes())
        };
        hash.store(named, Ordering::Release);
        Ok(())
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

    fn add_to_copy(&mut self, copy: u64, slot: Slot, record: &ResourceRecord, rules: &[BoardRule]) {
        let (records, table, _pool) = self.board.copy(copy);
        let Some(used) = self.used_mut(copy) else {
            return;
        };
        let first = *used;
        *used = first.saturating_add(rules.len());
        for (line, rule) in table.iter().skip(first).zip(rules) {
            store(line, &rule.words());
        }
        let record = ResourceRecord {
            generation: slot.generation,
            rules_first: u32::try_from(first).unwrap_or(u32::MAX),
            rules: u32::try_from(rules.len()).unwrap_or(0),
            ..*record
        };
        let place = usize::try_from(slot.index).unwrap_or(usize::MAX);
        if let Some(line) = records.get(place) {
            store(line, &record.words_with(rules));
        }
    }

    /// Writes a name where there is room for its text.
    fn add_name(&mut self, name: &str) -> Result<PoolSpan, RuleFault> {
        let long = RuleFault::NameTooLong(name.len());
        let length = u8::try_from(name.len()).map_err(|_long| long)?;
        let full = RuleFault::NamesFull(self.names.len().saturating_mul(8));
        let text = self.text.take(u32::from(length)).ok_or(full)?;
        let start = usize::try_from(text.start).map_err(|_wide| full)?;
        for (at, byte) in (start..).zip(name.bytes()) {
            if let Some(word) = self.names.get(at / 8) {
                let mut bytes = word.load(Ordering::Relaxed).to_le_bytes();
                if let Some(place) = bytes.get_mut(at % 8) {
                    *place = byte;
                }
                word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
        self.count_text(text);
        Ok(text)
    }

    /// Says how far the text of the names reaches.
    fn count_text(&self, text: PoolSpan) {
        let used: &Word = &self.header()[header::NAMES_USED];
        let end = u64::from(text.start).saturating_add(u64::from(text.length));
        // Relaxed: this role alone writes it.
        used.store(end.max(used.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}
