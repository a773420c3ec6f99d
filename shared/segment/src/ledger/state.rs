//! A line of rule state.

use tidegate_abi::ledger::state as field;

use super::Ledger;
use crate::board::Span;
use crate::sync::{Ordering, Word};

/// The state of one rule on one resource.
#[derive(Clone, Copy)]
pub struct State {
    line: &'static [Word; field::WORDS],
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl Ledger {
    /// A rule's line of state.
    #[inline]
    pub fn state(&self, index: u32) -> Option<State> {
        let line = self.states.get(usize::try_from(index).ok()?)?;
        Some(State { line })
    }

    /// Zeroes a line for a rule that is new there.
    pub fn clear_state(&self, index: u32) {
        if let Some(state) = self.state(index) {
            state
                .line
                .iter()
                .for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

impl Ledger {
    /// Zeroes sets of values for a rule that is new there.
    pub fn clear_sets(&self, sets: Span) {
        let start = usize::try_from(sets.start).unwrap_or(usize::MAX);
        let length = usize::try_from(sets.length).unwrap_or(0);
        let run = self.values.iter().skip(start).take(length);
        run.flatten()
            .filter(|word| word.load(Ordering::Relaxed) != 0)
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

impl State {
    /// The rule's own word.
    #[inline]
    pub const fn word(&self) -> &'static Word {
        &self.line[field::STATE]
    }

    /// Its second word.
    #[inline]
    pub const fn second(&self) -> &'static Word {
        &self.line[field::SECOND]
    }

    /// A word of the line; items of a hot-parameter rule have one each.
    pub fn item(&self, index: usize) -> Option<&'static Word> {
        self.line.get(index)
    }

    /// Counts a request that the rule refused, or would have refused if it did not only observe.
    pub fn count_refused(&self, observed: bool) {
        let word = if observed {
            &self.line[field::OBSERVED]
        } else {
            &self.line[field::REFUSED]
        };
        word.count(1);
    }

    /// Requests that the rule refused, and that it would have refused, free-running.
    pub fn refused_and_observed(&self) -> (u64, u64) {
        let word = |field: usize| crate::sync::peek(self.line, field);
        (word(field::REFUSED), word(field::OBSERVED))
    }
}
