//! Compiles a rule set for the names that have slots, and publishes it as one.

use std::sync::Arc;

use tidegate_segment::board::{BoardRule, CompiledRules, ResourceRecord, RuleFault, Slot};

use super::super::compile::room::Room;
use super::super::compile::{self, Compiler, Pool};
use super::super::rule_index::RuleIndex;
use super::give::compile_name;
use super::{ResourceDirectory, Writer};

/// Least time between two publishes, ns. A reader that was interrupted between the two must find its
/// copy untouched when it goes on.
const PUBLISH_GAP_NS: u64 = 10_000_000;

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
pub struct PublishResult {
    /// Resources of the rules for which there was no slot; the overflow resource serves them, without
    /// these rules. The operator must hear of them.
    pub unplaced: Vec<(String, RuleFault)>,
}

/// A rule set on its way to the board.
#[derive(Debug, Default)]
struct Set {
    records: Vec<ResourceRecord>,
    rules: Vec<BoardRule>,
    pool: Pool,
    left_out: Vec<(String, RuleFault)>,
}

impl ResourceDirectory {
    /// Publishes a rule set as one; resources that rules name get a slot first.
    ///
    /// Windows and counts belong to nodes, and an unchanged rule keeps its state.
    ///
    /// # Errors
    /// The last publish is less than 10 ms ago, or the pages have no room for the rules; the set
    /// before stays in force then.
    pub fn publish(&self, limits: RuleIndex, now_ns: u64) -> Result<PublishResult, PublishFault> {
        let mut writer = self.writer.lock();
        writer.check_gap(now_ns)?;
        let before = self.rule_index();
        let mut published = PublishResult {
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
    pub(super) fn publish_compiled(
        &self,
        writer: &mut Writer,
        limits: &RuleIndex,
        now_ns: u64,
    ) -> Result<Vec<(String, RuleFault)>, PublishFault> {
        let mut room = writer.room.clone();
        let params = limits.params_on(writer.names.iter().map(|(name, _slot)| name));
        room.begin(self.rule_index().rules(), limits.rules(), params);
        let mut set = self.compile(&writer.names, limits, &mut room);
        let system = compile::system::placed(&limits.system(), &mut set.pool);
        room.end();
        let records = |slot: Slot| {
            let index = usize::try_from(slot.index).ok();
            let record = index.and_then(|index| set.records.get(index));
            record.copied().unwrap_or_default()
        };
        let table = CompiledRules {
            rules: &set.rules,
            pool: set.pool.words(),
            system,
        };
        room.carry_before();
        writer.rules.publish(table, records)?;
        room.carry_after();
        writer.room = room;
        writer.published_ns = Some(now_ns);
        Ok(set.left_out)
    }

    /// Gives a slot to each resource that rules name. With an empty record: its rules come into force
    /// with all others.
    fn add_named(&self, writer: &mut Writer, limits: &RuleIndex) -> Vec<(String, RuleFault)> {
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

    fn compile(&self, names: &[(Arc<str>, Slot)], limits: &RuleIndex, room: &mut Room) -> Set {
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
            set.records.push(ResourceRecord {
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
}

impl Writer {
    pub(super) fn check_gap(&self, now_ns: u64) -> Result<(), TooSoon> {
        let Some(published_ns) = self.published_ns else {
            return Ok(());
        };
        match PUBLISH_GAP_NS.saturating_sub(now_ns.saturating_sub(published_ns)) {
            0 => Ok(()),
            wait_ns => Err(TooSoon { wait_ns }),
        }
    }
}
