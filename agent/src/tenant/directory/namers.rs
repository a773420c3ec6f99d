//! Who made up which name, so that one user cannot fill the pages with them.

use std::collections::HashMap;

use tidegate_segment::board::Slot;

/// The users whose questions gave slots their names.
#[derive(Debug, Default)]
pub(super) struct Namers {
    by_slot: HashMap<u32, u32>,
    names: HashMap<u32, u32>,
}

impl Namers {
    /// Slots that a user has named.
    pub(super) fn names_of(&self, uid: u32) -> u32 {
        self.names.get(&uid).copied().unwrap_or(0)
    }

    /// A user has named a slot.
    pub(super) fn note(&mut self, slot: Slot, uid: u32) {
        self.forget(slot);
        self.by_slot.insert(slot.index, uid);
        let names = self.names.entry(uid).or_default();
        *names = names.saturating_add(1);
    }

    /// The slot was taken back.
    pub(super) fn forget(&mut self, slot: Slot) {
        let Some(uid) = self.by_slot.remove(&slot.index) else {
            return;
        };
        if let Some(names) = self.names.get_mut(&uid) {
            *names = names.saturating_sub(1);
            if *names == 0 {
                self.names.remove(&uid);
            }
        }
    }
}
