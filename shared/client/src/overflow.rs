//! Names that found no slot of their own, and share one with others.
//!
//! A later rule set may name them, or have a pattern for them, and then they have another slot. Decisions cannot
//! see that: the slot that they share is as good as before. So the keeper asks again after each new set.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::entry::Entry;
use crate::life::Life;
use crate::way::Way;

/// How often the generation of the rules is looked at while names share a slot.
const LOOK: Duration = Duration::from_secs(1);

/// The names of a session that share a slot.
#[derive(Debug, Default)]
pub(crate) struct OverflowNames {
    entries: HashMap<Box<str>, Arc<Entry>>,
    /// Generation of the rules that they were resolved under, or an older one.
    rules: u64,
}

impl OverflowNames {
    pub(crate) fn begin(way: &Way) -> Self {
        Self {
            entries: HashMap::new(),
            rules: way.rules_generation(),
        }
    }

    /// Takes down what the agent answered: whether a name shares its slot.
    pub(crate) fn note(&mut self, entry: &Arc<Entry>, shares: bool) {
        if shares {
            self.entries.insert(entry.name().into(), Arc::clone(entry));
        } else {
            self.entries.remove(entry.name());
        }
    }

    /// How long the keeper may wait for an event; for ever where no name shares a slot.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (!self.entries.is_empty()).then_some(LOOK)
    }

    /// Lets all of them be resolved anew where there is another rule set since.
    pub(crate) fn look(&mut self, way: &Way, life: &Life) {
        let rules = way.rules_generation();
        if rules == self.rules || self.entries.is_empty() {
            return;
        }
        self.rules = rules;
        let again = self.entries.drain().map(|(_name, entry)| entry);
        life.lock().pending.extend(again);
    }
}
