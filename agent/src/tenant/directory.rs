//! Finds the slot of a resource's name, and publishes the records of rule sets.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_segment::board::{Board, Record, Rule, RuleFault, RuleSet, RuleWriter, Slot};
use tidegate_segment::ledger::Ledger;
use tidegate_segment::sync::{Ordering, Word};

mod idle;
mod memory;

use super::compile::room::Room;
use super::compile::{Compiled, Compiler, Pool, part_record};
pub use super::limit::overflow::NAME as OVERFLOW_NAME;
use super::limit::{Limits, Part};
use idle::Idle;

/// Name of the slot whose node counts all inbound requests together.
pub const INBOUND_NAME: &str = "__inbound__";

/// Between a resource and an origin in the name of a node.
const ORIGIN_SEPARATOR: char = '\u{1f}';
/// Between a resource and a context in the name of a node.
const CONTEXT_SEPARATOR: char = '\u{1e}';
const SEPARATORS: [char; 2] = [ORIGIN_SEPARATOR, CONTEXT_SEPARATOR];

/// Least time between two publishes, ns. A reader that was interrupted between the two must find its
/// copy untouched when it goes on.
const PUBLISH_GAP_NS: u64 = 10_000_000;

/// One slot in this many is kept for resources that rules name, so that names made up by callers
/// cannot push them out.
const KEPT_SHARE: u32 = 8;

/// One slot in this many is kept from nodes for origins and contexts: callers name these as they like.
const PARTS_SHARE: u32 = 2;

/// Where a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The slot.
    pub slot: Slot,
    /// Whether the slot is one that the name shares with others.
    pub overflow: bool,
}

/// The last publish was too short a time ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the last rule set was published a moment ago; try again in {wait_ns} ns")]
pub struct TooSoon {
    /// When to try again, ns from now.
    pub wait_ns: u64,
}

/// Why a rule set was not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishFault {
    /// Too early.
    #[error(transparent)]
    TooSoon(#[from] TooSoon),
    /// The pages have no room for it.
    #[error(transparent)]
    NoRoom(#[from] RuleFault),
}

/// What became of a rule set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Published {
    /// Resources of the rules for which there was no slot; the overflow resource serves them, without
    /// these rules. The operator must hear of them.
    pub unplaced: Vec<(String, RuleFault)>,
    /// Ids of the rules that nothing is held against yet, see [`Limits::not_in_force`].
    pub not_in_force: Vec<String>,
}

/// Finds the slot of a name. Each name is looked up once for a connection, not on each decision.
#[derive(Debug)]
pub struct Directory {
    view: RwLock<View>,
    writer: Mutex<Writer>,
    overflowed: Word,
}

#[derive(Debug, Default)]
struct View {
    slots: HashMap<Arc<str>, Slot>,
    limits: Arc<Limits>,
}

#[derive(Debug)]
struct Writer {
    rules: RuleWriter,
    ledger: Ledger,
    /// Names in the order of their slots; empty where a slot was taken back.
    names: Vec<(Arc<str>, Slot)>,
    idle: Idle,
    /// Who has which state in the ledger.
    room: Room,
    published_ns: Option<u64>,
}

impl Directory {
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
    pub fn resolve(&self, name: &str) -> Found {
        let own = self.find(name);
        if let Some(slot) = own.or_else(|| self.add_new(name, KEPT_SHARE)) {
            return found(slot);
        }
        self.overflowed.count(1);
        self.shared(name)
    }

    /// The slot that a name without one shares with others.
    fn shared(&self, name: &str) -> Found {
        // Not while a set is published that has others.
        let _writer = self.writer.lock();
        let limits = self.limits();
        let slot = self.find(limits.overflow(name));
        Found {
            slot: slot.unwrap_or(Slot::OVERFLOW),
            overflow: true,
        }
    }

    /// The slot of a resource's node for an origin or a context, where a rule wants one and there is
    /// room. Without it the resource's own node serves, which is stricter.
    pub fn resolve_part(&self, resource: &str, part: Part, name: &str) -> Option<Slot> {
        let whole = part_name(resource, part, name);
        let known = self.find(&whole);
        if known.is_some() || !self.limits().wants_part(resource, part, name) {
            return known;
        }
        self.add_new(&whole, PARTS_SHARE)
    }

    /// Adds a name while one slot in `kept_share` is left for others.
    fn add_new(&self, name: &str, kept_share: u32) -> Option<Slot> {
        let mut writer = self.writer.lock();
        // Another connection may have added it meanwhile.
        if let Some(slot) = self.find(name) {
            return Some(slot);
        }
        if !writer.has_room(kept_share) {
            return None;
        }
        let added = self.add(&mut writer, name);
        added
            .inspect_err(|fault| tracing::debug!(%fault, "a name gets no slot of its own"))
            .ok()
    }

    /// Where a name is counted, without giving it a slot: its own, or one that it shares where it found
    /// none; `None` while it may still get one.
    pub fn known(&self, name: &str) -> Option<Found> {
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

    /// Publishes a rule set as one; resources that rules name get a slot first.
    ///
    /// Windows and counts belong to nodes, and an unchanged rule keeps its state.
    ///
    /// # Errors
    /// The last publish is less than 10 ms ago, or the pages have no room for the rules; the set
    /// before stays in force then.
    pub fn publish(&self, limits: Limits, now_ns: u64) -> Result<Published, PublishFault> {
        let mut writer = self.writer.lock();
        writer.check_gap(now_ns)?;
        let before = self.limits();
        let mut published = Published {
            not_in_force: limits.not_in_force().map(|rule| rule.id.clone()).collect(),
            unplaced: self.add_named(&mut writer, &limits),
        };
        let unplaced = self.publish_compiled(&mut writer, &limits, now_ns)?;
        published.unplaced.extend(unplaced);
        let gone = before.overflows().filter(|name| !limits.names(name));
        gone.for_each(|name| self.close_named(&mut writer, name, now_ns));
        self.view.write().limits = Arc::new(limits);
        Ok(published)
    }

    /// Compiles a set for the names that have slots and publishes it; the rules that found no room.
    fn publish_compiled(
        &self,
        writer: &mut Writer,
        limits: &Limits,
        now_ns: u64,
    ) -> Result<Vec<(String, RuleFault)>, PublishFault> {
        let mut room = writer.room.clone();
        let params = limits.params_on(writer.names.iter().map(|(name, _slot)| name));
        room.begin(self.limits().rules(), limits.rules(), params);
        let mut set = self.compile(&writer.names, limits, &mut room);
        let system = limits.system().placed(&mut set.pool);
        room.end();
        let records = |slot: Slot| {
            let index = usize::try_from(slot.index).ok();
            let record = index.and_then(|index| set.records.get(index));
            record.copied().unwrap_or_default()
        };
        let table = RuleSet {
            rules: &set.rules,
            pool: set.pool.words(),
            system,
        };
        writer.rules.publish(table, records)?;
        writer.room = room;
        writer.published_ns = Some(now_ns);
        Ok(set.left_out)
    }

    /// Gives a slot to each resource that rules name. With an empty record: its rules come into force
    /// with all others.
    fn add_named(&self, writer: &mut Writer, limits: &Limits) -> Vec<(String, RuleFault)> {
        let new = limits.named().filter(|name| self.find(name).is_none());
        let mut names: Vec<&str> = new.collect();
        // In an order that does not depend on a hash.
        names.sort_unstable();
        names.dedup();
        let added = names.into_iter().filter_map(|name| {
            let fault = self.add_empty(writer, name).err()?;
            Some((name.to_owned(), fault))
        });
        added.collect()
    }

    fn compile(&self, names: &[(Arc<str>, Slot)], limits: &Limits, room: &mut Room) -> Set {
        let mut set = Set::default();
        let slot_of = |name: &str| self.find(name).map(|slot| slot.index);
        for (name, _slot) in names {
            let mut compiler = Compiler {
                limits,
                room: &mut *room,
                pool: &mut set.pool,
                slot_of: &slot_of,
            };
            let own = compile_name(&mut compiler, name);
            set.records.push(Record {
                rules_first: u32::try_from(set.rules.len()).unwrap_or(u32::MAX),
                rules: u32::try_from(own.rules.len()).unwrap_or(0),
                ..own.record
            });
            set.rules.extend(own.rules);
            let left_out = own.left_out.into_iter();
            set.left_out
                .extend(left_out.map(|fault| (name.to_string(), fault)));
        }
        set
    }

    /// The limits in force, and the rules they were made of.
    pub fn limits(&self) -> Arc<Limits> {
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
            !name.is_empty() && *slot != Slot::INBOUND && !name.contains(SEPARATORS)
        };
        names.into_iter().filter(is_resource).collect()
    }

    /// Adds a name with the rules in force; the caller holds the writer. A name whose rules find no room gets no
    /// slot: it shares one on which they are in force.
    fn add(&self, writer: &mut Writer, name: &str) -> Result<Slot, RuleFault> {
        let limits = self.limits();
        let added = self.add_with(writer, name, &limits);
        if added.is_err() {
            // Nobody has heard of it, so nobody writes there.
            let rules = limits.of_resource(name).into_iter();
            let held = writer.room.leave(name, rules.map(|placed| placed.index));
            writer.room.give_back(&held);
        }
        added
    }

    fn add_with(
        &self,
        writer: &mut Writer,
        name: &str,
        limits: &Limits,
    ) -> Result<Slot, RuleFault> {
        let mut pool = Pool::behind(writer.rules.pool_used());
        let compiled = compile_name(
            &mut Compiler {
                limits,
                room: &mut writer.room,
                pool: &mut pool,
                slot_of: &|name| self.find(name).map(|slot| slot.index),
            },
            name,
        );
        if let Some(fault) = compiled.left_out.first() {
            return Err(*fault);
        }
        writer.rules.add_to_pool(pool.words())?;
        self.give(writer, name, (&compiled.record, &compiled.rules))
    }

    fn add_empty(&self, writer: &mut Writer, name: &str) -> Result<Slot, RuleFault> {
        self.give(writer, name, (&Record::default(), &[]))
    }

    /// Gives a slot to a name: one that was given back, or the next new one.
    fn give(
        &self,
        writer: &mut Writer,
        name: &str,
        (record, rules): (&Record, &[Rule]),
    ) -> Result<Slot, RuleFault> {
        let text: Arc<str> = Arc::from(name);
        let slot = if let Some(slot) = writer.idle.peek() {
            writer.rules.reopen(slot, name, record, rules)?;
            writer.idle.given();
            let place = usize::try_from(slot.index).ok();
            if let Some(named) = place.and_then(|place| writer.names.get_mut(place)) {
                *named = (Arc::clone(&text), slot);
            }
            slot
        } else {
            let slot = writer.rules.add(name, record, rules)?;
            writer.names.push((Arc::clone(&text), slot));
            slot
        };
        self.view.write().slots.insert(text, slot);
        Ok(slot)
    }

    /// Takes back the slot of a name that rules gave one.
    fn close_named(&self, writer: &mut Writer, name: &str, now_ns: u64) {
        let place = writer
            .names
            .iter()
            .position(|(named, _slot)| **named == *name);
        if let Some(place) = place {
            self.take_back(writer, place, now_ns);
        }
    }
}

/// The name of a resource's node for an origin or a context. Neither separator can be in a name that
/// comes from outside.
pub fn part_name(resource: &str, part: Part, name: &str) -> String {
    let separator = match part {
        Part::Origin => ORIGIN_SEPARATOR,
        Part::Context => CONTEXT_SEPARATOR,
    };
    format!("{resource}{separator}{name}")
}

fn compile_name(compiler: &mut Compiler<'_>, name: &str) -> Compiled {
    if name.is_empty() || name == INBOUND_NAME {
        return Compiled::default();
    }
    if name.contains(SEPARATORS) {
        return Compiled {
            record: part_record(compiler.limits),
            ..Compiled::default()
        };
    }
    compiler.resource(name)
}

/// A rule set on its way to the board.
#[derive(Debug, Default)]
struct Set {
    records: Vec<Record>,
    rules: Vec<Rule>,
    pool: Pool,
    left_out: Vec<(String, RuleFault)>,
}

impl Writer {
    fn board(&self) -> Board {
        self.rules.board()
    }

    fn has_room(&self, kept_share: u32) -> bool {
        let slots = self.board().geometry().resources();
        let kept = slots / kept_share;
        let used = self.board().resources_used();
        used.saturating_sub(self.idle.free()) < slots.saturating_sub(kept)
    }

    fn check_gap(&self, now_ns: u64) -> Result<(), TooSoon> {
        let Some(published_ns) = self.published_ns else {
            return Ok(());
        };
        match PUBLISH_GAP_NS.saturating_sub(now_ns.saturating_sub(published_ns)) {
            0 => Ok(()),
            wait_ns => Err(TooSoon { wait_ns }),
        }
    }
}

fn found(slot: Slot) -> Found {
    Found {
        slot,
        overflow: slot == Slot::OVERFLOW,
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::board::Needs;
    use tidegate_abi::geometry::Geometry;

    use super::super::limit::tests::limits;
    use super::*;
    use crate::tenant::tests::tenant;

    fn qps(resource: &str, most: u32) -> Limits {
        limits(&format!(
            "[[flow]]\nid = \"first\"\nresource = \"{resource}\"\ncount = {most}"
        ))
    }

    fn tenant_with(resources: u32) -> super::super::Tenant {
        tenant(Geometry::new(resources, 4, 2, 2).unwrap())
    }

    #[test]
    fn a_name_keeps_its_slot_and_names_over_the_bound_share_one() {
        let tenant = tenant_with(8);
        let directory = tenant.directory();
        let first = directory.resolve("a");
        assert!(!first.overflow);
        assert_eq!(directory.resolve("a"), first);
        for name in ["b", "c", "d", "e"] {
            assert!(!directory.resolve(name).overflow, "{name}");
        }
        assert!(directory.resolve("g").overflow);
        assert_eq!(directory.overflowed(), 1);
        // The place kept for rules.
        let published = directory.publish(qps("from-a-rule", 5), 0).unwrap();
        assert_eq!(published, Published::default());
        assert!(!directory.resolve("from-a-rule").overflow);
        let published = directory
            .publish(qps("one-too-many", 5), 10_000_000)
            .unwrap();
        let [(name, fault)] = published.unplaced.as_slice() else {
            panic!("{published:?}");
        };
        assert_eq!(
            (name.as_str(), *fault),
            ("one-too-many", RuleFault::Full(8))
        );
    }

    /// A hot-parameter rule on each of so many resources.
    fn params(resources: usize) -> Limits {
        let rule = |number| format!("[[param]]\nresource = \"r{number}\"\nindex = 0\ncount = 1\n");
        limits(&(0..resources).map(rule).collect::<String>())
    }

    #[test]
    fn hot_parameter_rules_share_the_room_for_values_and_leave_some_for_later_ones() {
        let tenant = tenant_with(16);
        let directory = tenant.directory();
        let mut now_ns = 0;
        let mut publish = |rules| {
            now_ns += 10_000_000;
            directory.publish(params(rules), now_ns).unwrap().unplaced
        };
        // 64 sets: of one rule a half, then a third of all, and what is left.
        for rules in [1, 2, 3] {
            assert_eq!(publish(rules), [], "{rules}");
        }
        let tenant = tenant_with(16);
        let published = tenant.directory().publish(params(7), 0).unwrap();
        assert_eq!(published.unplaced, [], "seven at once");
        let tenant = tenant_with(16);
        let published = tenant.directory().publish(params(12), 0).unwrap();
        let unplaced = published.unplaced.iter().map(|(_name, fault)| *fault);
        assert_eq!(unplaced.collect::<Vec<_>>(), [RuleFault::ValuesFull(64); 4]);
        assert_eq!(
            RuleFault::ValuesFull(64).to_string(),
            "the values of hot-parameter rules need more than 64 sets; raise pages.max_resources and restart"
        );
    }

    #[test]
    fn a_rule_set_is_in_force_for_names_before_and_after_it() {
        let tenant = tenant_with(8);
        let directory = tenant.directory();
        let before = directory.resolve("a").slot;
        directory.publish(qps("a", 7), 0).unwrap();
        let record = tenant.board().record(before.index).unwrap();
        assert_eq!((record.needs, record.qps_limit), (Needs(Needs::QPS), 7));
        assert_eq!(directory.limits().id(0), Some("first"));
        directory.publish(Limits::default(), 10_000_000).unwrap();
        let record = tenant.board().record(before.index).unwrap();
        assert_eq!(record.needs, Needs(0));
    }

    #[test]
    fn two_publishes_are_kept_apart() {
        let tenant = tenant_with(8);
        let directory = tenant.directory();
        directory.publish(qps("a", 7), 1_000).unwrap();
        let soon = directory.publish(qps("a", 8), 2_000);
        assert_eq!(soon, Err(TooSoon { wait_ns: 9_999_000 }.into()));
        let record = tenant.board().record(directory.resolve("a").slot.index);
        assert_eq!(record.unwrap().qps_limit, 7);
    }
}
