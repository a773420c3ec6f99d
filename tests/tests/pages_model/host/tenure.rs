//! Whose the slots are: taken back, zeroed after a rest, and given again; and the rules that are in force.

use tidegate_segment::board::{CompiledRules, ResourceRecord, Slot};

use super::Host;
use super::past::OfPlace;
use crate::resource::{FIRST_SLOT, PLACES, record, rules, rules_of};

/// What becomes of a slot. Each is as it is named now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tenure {
    /// Somebody has it.
    Held(Slot),
    /// It was taken back, and processes may still be in the middle of a decision there.
    Closed(Slot),
    /// It rested and was zeroed.
    Clean(Slot),
}

impl Tenure {
    pub(super) const fn slot(self) -> Slot {
        match self {
            Self::Held(slot) | Self::Closed(slot) | Self::Clean(slot) => slot,
        }
    }
}

impl Host {
    /// Gives a slot to each place.
    pub(super) fn add_all(&mut self) {
        for name in 0..FIRST_SLOT {
            let name = format!("of the host {name}");
            let added = self
                .writers
                .rules
                .add(&name, &ResourceRecord::default(), &[]);
            added.expect("there is room");
        }
        let all = rules(0);
        for place in 0..PLACES {
            let (name, record) = (format!("place {place}"), record(place, 0));
            let rules = rules_of(place, &all);
            let slot = self.writers.rules.add(&name, &record, rules);
            let slot = slot.expect("there is room");
            self.tenures.push(Tenure::Held(slot));
            self.stage.give(place, Some(slot.generation));
        }
    }

    /// The same rules under other numbers.
    pub(super) fn publish(&mut self) {
        self.publishes += 1;
        let number = u32::try_from(self.publishes).expect("a small number");
        let rules = rules(number);
        let set = CompiledRules {
            rules: &rules,
            ..CompiledRules::default()
        };
        let tenures = &self.tenures;
        let published = self.writers.rules.publish(set, |slot| {
            let place = slot.index.checked_sub(FIRST_SLOT);
            let place = place.and_then(|place| usize::try_from(place).ok());
            let held = place.filter(|place| matches!(tenures[*place], Tenure::Held(_)));
            held.map_or_else(ResourceRecord::default, |place| record(place, number))
        });
        published.expect("there is room");
    }

    /// Takes the slot of a place back while processes work there.
    pub(super) fn close(&mut self, place: usize) {
        let Tenure::Held(slot) = self.tenures[place] else {
            return;
        };
        self.closes += 1;
        // Told first: whoever finds the slot taken back can see that it was.
        self.stage.give(place, None);
        self.tenures[place] = Tenure::Closed(self.writers.rules.close(slot));
    }

    /// Between two rounds nobody is in the middle of a decision: what was taken back is zeroed, and what was zeroed
    /// is given again, or rests for one more round.
    pub(super) fn give_again(&mut self) {
        for place in 0..PLACES {
            match self.tenures[place] {
                Tenure::Held(_) => {}
                Tenure::Closed(slot) => {
                    let seats = self.board.seats_used();
                    self.ledger.clear_node(slot.index, seats);
                    self.tenures[place] = Tenure::Clean(slot);
                }
                Tenure::Clean(slot) => {
                    if self.random.below(2) == 0 {
                        self.reopen(place, slot);
                    }
                }
            }
        }
    }

    fn reopen(&mut self, place: usize, slot: Slot) {
        while self.writers.rules.is_short() {
            // Twice at most: once for each copy of the table.
            self.publish();
        }
        let number = u32::try_from(self.publishes).expect("a small number");
        let name = format!("place {place} for the {}th", slot.generation);
        let (record, all) = (record(place, number), rules(number));
        let given = self
            .writers
            .rules
            .reopen(slot, &name, &record, rules_of(place, &all));
        given.expect("there is room");
        self.tenures[place] = Tenure::Held(slot);
        self.past.places[place] = OfPlace::default();
        self.stage.give(place, Some(slot.generation));
    }
}
