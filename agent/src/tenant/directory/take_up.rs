//! Goes on with the names of the board before.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_segment::board::{Board, RuleFault, RuleWriter, Slot};
use tidegate_segment::ledger::Ledger;
use tidegate_segment::sync::Word;

use super::super::breakers::lines;
use super::super::compile::inherit::RuleForm;
use super::super::compile::room::Room;
use super::idle::Idle;
use super::name::{INBOUND_NAME, OVERFLOW_NAME};
use super::namers::Namers;
use super::{ResourceDirectory, View, Writer};

impl ResourceDirectory {
    /// A directory in which every name of another board has the slot that it has there. What the rules there remember
    /// goes to those of the first set that are published here and say the same. `agent` is the agent's own seat, which
    /// holds nothing.
    ///
    /// # Errors
    /// The board has no room for them, or the other one is not whole.
    pub fn take_up(
        rules: RuleWriter,
        ledger: Ledger,
        before: &Board,
        agent: (u32, u32),
        now_ns: u64,
    ) -> Result<Box<Self>, RuleFault> {
        let mut view = View::default();
        let mut writer = Writer {
            rules,
            ledger,
            names: Vec::new(),
            namers: Namers::default(),
            one_user: false,
            idle: Idle::default(),
            room: Room::new(ledger),
            published_ns: None,
        };
        let mut text = [0; 256];
        for index in 0..before.resources_used() {
            let (slot, name) = before
                .name(index, &mut text)
                .ok_or(RuleFault::NamesFull(0))?;
            writer.rules.restore(slot, name)?;
            let name: Arc<str> = Arc::from(name);
            writer.names.push((Arc::clone(&name), slot));
            if name.is_empty() {
                writer.idle.rests(slot, now_ns);
            } else {
                writer.inherit(before, &name, slot, agent);
                view.slots.insert(name, slot);
            }
        }
        let own = [
            (OVERFLOW_NAME, Slot::OVERFLOW),
            (INBOUND_NAME, Slot::INBOUND),
        ];
        for (name, slot) in own {
            if view.slots.get(name) != Some(&slot) {
                return Err(RuleFault::Full(before.geometry().resources()));
            }
        }
        Ok(Box::new(Self {
            view: RwLock::new(view),
            writer: Mutex::new(writer),
            overflowed: Word::new(0),
        }))
    }
}

impl Writer {
    /// Takes down what the rules of a name have in the ledger.
    fn inherit(&mut self, before: &Board, name: &Arc<str>, slot: Slot, agent: (u32, u32)) {
        let view = before.view();
        for line in lines(before, slot).unwrap_or_default() {
            let form = RuleForm::of(&line.kind, |span| view.words_of(span).unwrap_or_default());
            self.room.inherit(name, form, &line, agent);
        }
    }
}
