//! A resource as this process knows it: its name, and its slot in the session now and the next one.

use std::sync::OnceLock;

use tidegate_segment::board::Slot;
use tidegate_segment::sync::{Ordering, Word};

use crate::parts::Parts;
use crate::slot_word::{SessionNumber, is_of, pack, unpack};

/// A resource name and where it is on the pages.
///
/// There are two slot words, so that the slots of the next session can be written while the present
/// one still decides. A word is `[session number 16 | slot generation 16 | slot index 32]`.
#[derive(Debug)]
pub(crate) struct Entry {
    name: Box<str>,
    slots: [Word; 2],
    /// Number of the life it is registered in.
    life: Word,
    /// 1 from the first decision that found its slot stale until it is resolved anew.
    stale: Word,
    /// Nodes for its origins and contexts, once a rule has wanted one.
    parts: OnceLock<Parts>,
}

impl Entry {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            slots: [Word::new(0), Word::new(0)],
            life: Word::new(0),
            stale: Word::new(0),
            parts: OnceLock::new(),
        }
    }

    /// The nodes for its origins and contexts.
    #[inline]
    pub(crate) fn parts(&self) -> &Parts {
        self.parts.get_or_init(Parts::default)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn word(&self, number: SessionNumber) -> &Word {
        let [even, odd] = &self.slots;
        if number.is_odd() { odd } else { even }
    }

    /// Its slot in a session, once that is known.
    #[inline]
    pub(crate) fn slot(&self, number: SessionNumber) -> Option<Slot> {
        // Relaxed: one word says all.
        unpack(number, self.word(number).load(Ordering::Relaxed))
    }

    /// The agent's answer: its slot in a session.
    pub(crate) fn resolved(&self, number: SessionNumber, slot: Slot) {
        let word = pack(number, slot);
        self.word(number).store(word, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
    }

    /// Uses a slot in a session until the agent answers.
    pub(crate) fn unless_resolved(&self, number: SessionNumber, slot: Slot) {
        let unresolved = pack(number, slot);
        self.word(number).change(Ordering::Relaxed, |seen| {
            if is_of(seen, number) {
                seen
            } else {
                unresolved
            }
        });
    }

    /// Whether the caller is the first to find the slot stale since it was resolved.
    pub(crate) fn found_stale(&self) -> bool {
        self.stale.change(Ordering::Relaxed, |_seen| 1) == 0
    }

    /// Whether a stale slot was found and not resolved anew yet.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed) != 0
    }

    /// Whether the entry is registered in a life.
    pub(crate) fn lives_in(&self, life: u64) -> bool {
        self.life.load(Ordering::Relaxed) == life
    }

    /// Whether the caller is the one to register the entry in a life.
    pub(crate) fn moves_to(&self, life: u64) -> bool {
        self.life.change(Ordering::Relaxed, |_seen| life) != life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Slot = Slot {
        index: 0x000f_fffe,
        generation: 0xfedc,
    };

    #[test]
    fn a_slot_belongs_to_its_session_alone() {
        let entry = Entry::new("a");
        let first = SessionNumber::FIRST;
        assert_eq!(entry.slot(first), None);
        entry.resolved(first, SLOT);
        assert_eq!(entry.slot(first), Some(SLOT));
        assert_eq!(entry.slot(first.next()), None);
        assert_eq!(entry.slot(first.next().next()), None);
        entry.resolved(first.next(), Slot::OVERFLOW);
        assert_eq!(entry.slot(first), Some(SLOT), "the old session goes on");
    }

    #[test]
    fn a_slot_found_otherwise_never_replaces_an_answer() {
        let entry = Entry::new("a");
        let number = SessionNumber::FIRST;
        entry.unless_resolved(number, Slot::OVERFLOW);
        assert_eq!(entry.slot(number), Some(Slot::OVERFLOW));
        entry.resolved(number, SLOT);
        entry.unless_resolved(number, Slot::OVERFLOW);
        assert_eq!(entry.slot(number), Some(SLOT));
    }

    #[test]
    fn a_stale_slot_is_reported_once_until_it_is_resolved() {
        let entry = Entry::new("a");
        assert!(entry.found_stale());
        assert!(!entry.found_stale());
        entry.resolved(SessionNumber::FIRST, SLOT);
        assert!(entry.found_stale());
    }
}
