//! Finds the slot of a resource's name.
//!
//! `name` has the kinds of names, `give` gives a name its slot, `publish` puts a rule set in force, `idle` takes slots
//! back, `memory` tells what rules remember of a name, `namers` who made it up.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_segment::board::{Board, RuleFault, RuleWriter, Slot};
use tidegate_segment::ledger::Ledger;
use tidegate_segment::sync::{Ordering, Word};

mod give;
mod idle;
mod memory;
mod name;
mod namers;
mod publish;
mod take_up;
mod unused;

use super::compile::room::Room;
use super::rule_index::{Part, RuleIndex};
use idle::Idle;
use name::is_part;
pub use name::{INBOUND_NAME, OVERFLOW_NAME, part_name, parts_of};
use namers::Namers;
pub use publish::{PublishFault, PublishResult, TooSoon};

/// One slot in this many is kept for resources that rules name, so that names made up by callers
/// cannot push them out.
const KEPT_SHARE: u32 = 8;

/// One slot in this many is kept from nodes for origins and contexts: callers name these as they like.
const PARTS_SHARE: u32 = 2;

/// One user other than root has named one slot in this many at most: names are kept while they are used, whoever made
/// them up.
const NAMES_SHARE: u32 = 2;

/// The user without a share.
const ROOT: u32 = 0;

/// Where a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundSlot {
    /// The slot.
    pub slot: Slot,
    /// Whether the slot is one that the name shares with others.
    pub overflow: bool,
}

/// Finds the slot of a name. Each name is looked up once for a connection, not on each decision.
#[derive(Debug)]
pub struct ResourceDirectory {
    view: RwLock<View>,
    writer: Mutex<Writer>,
    overflowed: Word,
}

#[derive(Debug, Default)]
struct View {
    slots: HashMap<Arc<str>, Slot>,
    limits: Arc<RuleIndex>,
}

#[derive(Debug)]
struct Writer {
    rules: RuleWriter,
    ledger: Ledger,
    /// Names in the order of their slots; empty where a slot was taken back.
    names: Vec<(Arc<str>, Slot)>,
    namers: Namers,
    /// Whether all who name are one user, who then needs no share.
    one_user: bool,
    idle: Idle,
    /// Who has which state in the ledger.
    room: Room,
    published_ns: Option<u64>,
}

impl ResourceDirectory {
    /// A directory that holds the overflow resource and the node of all inbound requests.
    ///
    /// # Errors
    /// The board has no room even for these.
    pub fn new(rules: RuleWriter, ledger: Ledger) -> Result<Box<Self>, RuleFault> {
        let directory = Box::new(Self {
            view: RwLock::default(),
            writer: Mutex::new(Writer {
                rules,
                ledger,
                names: Vec::new(),
                namers: Namers::default(),
                one_user: false,
                idle: Idle::default(),
                room: Room::new(ledger),
                published_ns: None,
            }),
            overflowed: Word::new(0),
        });
        for name in [OVERFLOW_NAME, INBOUND_NAME] {
            let added = directory.add(&mut directory.writer.lock(), name);
            added?;
        }
        Ok(directory)
    }

    /// The slot of a name that passed the checks; a new name gets a slot, while there are any.
    pub fn resolve(&self, name: &str) -> FoundSlot {
        self.resolve_by(name, ROOT)
    }

    /// The same for a user, who may name so many and no more.
    pub fn resolve_by(&self, name: &str, uid: u32) -> FoundSlot {
        let own = self.find(name);
        if let Some(slot) = own.or_else(|| self.add_new(name, KEPT_SHARE, uid)) {
            return found(slot);
        }
        self.overflowed.count(1);
        self.shared(name)
    }

    /// All who name are one user: there is nobody to keep slots for.
    pub fn serve_one_user(&self) {
        self.writer.lock().one_user = true;
    }

    /// The slot that a name without one shares with others.
    fn shared(&self, name: &str) -> FoundSlot {
        // Not while a set is published that has others.
        let _writer = self.writer.lock();
        let limits = self.rule_index();
        let slot = self.find(limits.overflow(name));
        FoundSlot {
            slot: slot.unwrap_or(Slot::OVERFLOW),
            overflow: true,
        }
    }

    /// The slot of a resource's node for an origin or a context, where a rule wants one and there is
    /// room. Without it the resource's own node serves, which is stricter.
    pub fn resolve_part(&self, resource: &str, part: Part, name: &str, uid: u32) -> Option<Slot> {
        let whole = part_name(resource, part, name);
        let known = self.find(&whole);
        if known.is_some() || !self.rule_index().wants_part(resource, part, name) {
            return known;
        }
        self.add_new(&whole, PARTS_SHARE, uid)
    }

    /// Adds a name while one slot in `kept_share` is left for others, and its user has not its share.
    fn add_new(&self, name: &str, kept_share: u32, uid: u32) -> Option<Slot> {
        let mut writer = self.writer.lock();
        // Another connection may have added it meanwhile.
        if let Some(slot) = self.find(name) {
            return Some(slot);
        }
        if !writer.has_room(kept_share) || !writer.has_share(uid) {
            return None;
        }
        let added = self.add(&mut writer, name);
        if let Ok(slot) = added {
            writer.namers.note(slot, uid);
        }
        added
            .inspect_err(|fault| tracing::debug!(event = "name_without_slot", %fault, "a name gets no slot of its own"))
            .ok()
    }

    /// Where a name is counted, without giving it a slot: its own, or one that it shares where it found
    /// none; `None` while it may still get one.
    pub fn known(&self, name: &str) -> Option<FoundSlot> {
        if let Some(slot) = self.find(name) {
            return Some(found(slot));
        }
        let full = !self.has_room(KEPT_SHARE);
        full.then(|| self.shared(name))
    }

    fn has_room(&self, kept_share: u32) -> bool {
        self.writer.lock().has_room(kept_share)
    }

    /// The slot of a name that has one.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.view.read().slots.get(name).copied()
    }

    /// The limits in force, and the rules they were made of.
    pub fn rule_index(&self) -> Arc<RuleIndex> {
        Arc::clone(&self.view.read().limits)
    }

    /// How often a name found no slot of its own.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Names and slots of the resources, in the order of the slots.
    pub fn list(&self) -> Vec<(Arc<str>, Slot)> {
        let names = self.writer.lock().names.clone();
        let is_resource = |(name, slot): &(Arc<str>, Slot)| {
            !name.is_empty() && *slot != Slot::INBOUND && !is_part(name)
        };
        names.into_iter().filter(is_resource).collect()
    }
}

impl Writer {
    fn board(&self) -> Board {
        self.rules.board()
    }

    /// Whether a user may name one more.
    fn has_share(&self, uid: u32) -> bool {
        let share = self.board().geometry().resources().div_ceil(NAMES_SHARE);
        uid == ROOT || self.one_user || self.namers.names_of(uid) < share
    }

    fn has_room(&self, kept_share: u32) -> bool {
        let slots = self.board().geometry().resources();
        let kept = slots / kept_share;
        let used = self.board().resources_used();
        used.saturating_sub(self.idle.free()) < slots.saturating_sub(kept)
    }
}

fn found(slot: Slot) -> FoundSlot {
    FoundSlot {
        slot,
        overflow: slot == Slot::OVERFLOW,
    }
}

#[cfg(test)]
mod tests;
