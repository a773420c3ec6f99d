//! Finds the slot of a resource's name, and publishes the records of rule sets.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_segment::board::{Board, RuleFault, RuleSet, RuleWriter, Slot};
use tidegate_segment::sync::{Ordering, Word};

use super::compile::record_of;
use super::limit::Limits;

/// Name of the resource that stands for all that got no slot of their own.
pub const OVERFLOW_NAME: &str = "__other__";

/// Least time between two publishes, ns. A reader that was interrupted between the two must find its
/// copy untouched when it goes on.
const PUBLISH_GAP_NS: u64 = 10_000_000;

/// One slot in this many is kept for resources that rules name, so that names made up by callers
/// cannot push them out.
const KEPT_SHARE: u32 = 8;

/// Where a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The slot.
    pub slot: Slot,
    /// Whether the slot is the overflow resource, which the name shares with others.
    pub overflow: bool,
}

/// The last publish was too short a time ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the last rule set was published a moment ago; try again in {wait_ns} ns")]
pub struct TooSoon {
    /// When to try again, ns from now.
    pub wait_ns: u64,
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
    /// Names in the order of their slots.
    names: Vec<(Arc<str>, Slot)>,
    published_ns: Option<u64>,
}

impl Directory {
    /// A directory that holds the overflow resource.
    ///
    /// # Errors
    /// The board has no room even for that.
    pub(super) fn new(rules: RuleWriter) -> Result<Box<Self>, RuleFault> {
        let directory = Box::new(Self {
            view: RwLock::default(),
            writer: Mutex::new(Writer {
                rules,
                names: Vec::new(),
                published_ns: None,
            }),
            overflowed: Word::new(0),
        });
        let added = directory.add(&mut directory.writer.lock(), OVERFLOW_NAME);
        added.map(|_slot| directory)
    }

    /// The slot of a name that passed the checks; a new name gets a slot, while there are any.
    pub fn resolve(&self, name: &str) -> Found {
        if let Some(slot) = self.find(name) {
            return found(slot);
        }
        let mut writer = self.writer.lock();
        // Another connection may have added it meanwhile.
        if let Some(slot) = self.find(name) {
            return found(slot);
        }
        if writer.has_room_for_others() {
            match self.add(&mut writer, name) {
                Ok(slot) => return found(slot),
                Err(fault) => tracing::debug!(%fault, "a name shares the overflow resource"),
            }
        }
        self.overflowed.count(1);
        found(Slot::OVERFLOW)
    }

    /// The slot of a name that has one.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.view.read().slots.get(name).copied()
    }

    /// Publishes the records of a rule set as one; resources that rules name get a slot first.
    ///
    /// Windows and counts belong to nodes, so an unchanged rule keeps its state.
    ///
    /// # Errors
    /// The last publish is less than 10 ms ago; nothing has changed then.
    pub fn publish(&self, limits: Limits, now_ns: u64) -> Result<Published, TooSoon> {
        let mut writer = self.writer.lock();
        writer.check_gap(now_ns)?;
        let ids = limits.not_in_force().map(|rule| rule.id.clone());
        let mut published = Published {
            not_in_force: ids.collect(),
            unplaced: Vec::new(),
        };
        for name in limits.named() {
            if self.find(name).is_some() {
                continue;
            }
            // With an empty record: its rules come into force with all others below.
            if let Err(fault) = self.add(&mut writer, name) {
                published.unplaced.push((name.to_owned(), fault));
            }
        }
        let Writer { rules, names, .. } = &mut *writer;
        let record = |slot: Slot| {
            let name = usize::try_from(slot.index)
                .ok()
                .and_then(|index| names.get(index));
            record_of(
                name.into_iter()
                    .flat_map(|(name, _slot)| limits.of_resource(name)),
            )
        };
        // Plain limits need no place in the rule table, so there is room for them.
        rules
            .publish(RuleSet::default(), record)
            .map_err(|_full| TooSoon { wait_ns: 0 })?;
        writer.published_ns = Some(now_ns);
        self.view.write().limits = Arc::new(limits);
        Ok(published)
    }

    /// The limits in force, and the rules they were made of.
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.view.read().limits)
    }

    /// How often a name found no slot of its own.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Names and slots, in the order of the slots.
    pub fn list(&self) -> Vec<(Arc<str>, Slot)> {
        self.writer.lock().names.clone()
    }

    /// Adds a name with the limits in force; the caller holds the writer.
    fn add(&self, writer: &mut Writer, name: &str) -> Result<Slot, RuleFault> {
        let limits = self.limits();
        let slot = writer
            .rules
            .add(name, &record_of(limits.of_resource(name)), &[])?;
        let name: Arc<str> = Arc::from(name);
        writer.names.push((Arc::clone(&name), slot));
        self.view.write().slots.insert(name, slot);
        Ok(slot)
    }
}

impl Writer {
    fn board(&self) -> Board {
        self.rules.board()
    }

    fn has_room_for_others(&self) -> bool {
        let slots = self.board().geometry().resources();
        let kept = slots / KEPT_SHARE;
        self.board().resources_used() < slots.saturating_sub(kept)
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
        for name in ["b", "c", "d", "e", "f"] {
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
        assert_eq!(soon, Err(TooSoon { wait_ns: 9_999_000 }));
        let record = tenant.board().record(directory.resolve("a").slot.index);
        assert_eq!(record.unwrap().qps_limit, 7);
    }
}
