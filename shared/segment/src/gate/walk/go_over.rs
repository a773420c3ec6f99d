//! Sets of rules that were published while a walk waited.

use super::Walk;
use crate::board::{BoardRule, ResourceRecord, View};

impl Walk<'_> {
    /// Goes over to a set that was published while the walk waited: on from the rule that let the request
    /// wait where the set has it unchanged, with its state; else with the rules of the kinds that come after it.
    pub(super) fn go_over(&mut self, view: &View, record: &ResourceRecord) {
        if view.generation() == self.generation {
            return;
        }
        let (place, state) = self.asked;
        let first = |wanted: &dyn Fn(&BoardRule) -> bool| {
            (0..record.rules).find(|place| {
                let rule = view.rule(record.rules_first.saturating_add(*place));
                rule.is_some_and(|rule| wanted(&rule))
            })
        };
        let same = |rule: &BoardRule| rule.refusal_kind() == self.kind && rule.state == state;
        if let Some(same) = first(&same) {
            self.next = same.saturating_add(self.next.saturating_sub(place));
        } else {
            let later = first(&|rule| rule.refusal_kind() > self.kind);
            self.next = later.unwrap_or(record.rules);
            self.element = 0;
        }
        self.generation = view.generation();
    }
}
