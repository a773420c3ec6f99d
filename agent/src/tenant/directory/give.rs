//! Gives slots to names.

use std::sync::Arc;

use tidegate_segment::board::{BoardRule, ResourceRecord, RuleFault, Slot};

use super::super::compile::{CompiledSet, Compiler, Pool, part_record};
use super::super::rule_index::RuleIndex;
use super::name::{INBOUND_NAME, is_part};
use super::{ResourceDirectory, Writer};

impl ResourceDirectory {
    /// Adds a name with the rules in force; the caller holds the writer. A name whose rules find no room gets no
    /// slot: it shares one on which they are in force.
    pub(super) fn add(&self, writer: &mut Writer, name: &str) -> Result<Slot, RuleFault> {
        let limits = self.rule_index();
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
        limits: &RuleIndex,
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
        self.give(writer, name, &compiled.record, &compiled.rules)
    }

    /// Adds a name with an empty record: its rules come into force with all others.
    pub(super) fn add_empty(&self, writer: &mut Writer, name: &str) -> Result<Slot, RuleFault> {
        self.give(writer, name, &ResourceRecord::default(), &[])
    }

    /// Gives a slot to a name: one that was given back, or the next new one.
    fn give(
        &self,
        writer: &mut Writer,
        name: &str,
        record: &ResourceRecord,
        rules: &[BoardRule],
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
    pub(super) fn close_named(&self, writer: &mut Writer, name: &str, now_ns: u64) {
        let place = writer
            .names
            .iter()
            .position(|(named, _slot)| **named == *name);
        if let Some(place) = place {
            self.take_back(writer, place, now_ns);
        }
    }
}

/// The record and rules of a name.
pub(super) fn compile_name(compiler: &mut Compiler<'_>, name: &str) -> CompiledSet {
    if name.is_empty() || name == INBOUND_NAME {
        return CompiledSet::default();
    }
    if is_part(name) {
        return CompiledSet {
            record: part_record(compiler.limits),
            ..CompiledSet::default()
        };
    }
    compiler.resource(name)
}
