//! Values that an item of a hot-parameter rule names, and states that are brought over to another limit.
//!
//! An item has a word of its own, which is never given to another value: a bit that says whether the value was
//! seen, and its state.

use tidegate_limits::param::STATE_MAX;

use super::{Ledger, StepResult};
use crate::board::PoolSpan;
use crate::sync::Word;

/// The value was seen, so the state below is one.
const SEEN: u64 = 1 << 63;

/// Words of a line of state that items use.
const ITEMS_OF_LINE: u32 = 8;

/// The state of a value that an item names.
#[derive(Clone, Copy)]
pub struct ItemState {
    word: &'static Word,
}

impl core::fmt::Debug for ItemState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Item").finish_non_exhaustive()
    }
}

impl ItemState {
    /// Runs a step on the state (`None` at first sight) and stores what it makes of it; `None` if other writers
    /// won every try.
    #[inline]
    pub fn step<T>(self, step: impl Fn(Option<u64>) -> StepResult<T>) -> Option<T> {
        self.word.step(|seen| {
            let held = (seen & SEEN != 0).then_some(seen & !SEEN);
            let (given, next) = step(held);
            (given, next.map_or(seen, |next| next | SEEN))
        })
    }

    /// Replaces the state of a value that was seen.
    pub fn change(self, change: impl Fn(u64) -> u64) {
        let _changed: Option<()> = self.step(|held| ((), held.map(&change)));
    }
}

impl Ledger {
    /// An item of the rule with that line of state; the lines after it are those of its items.
    pub fn item(&self, state: u32, number: u32) -> Option<ItemState> {
        let line = state
            .saturating_add(1)
            .saturating_add(number / ITEMS_OF_LINE);
        let place = usize::try_from(number % ITEMS_OF_LINE).ok()?;
        let word = self.state(line)?.item(place)?;
        Some(ItemState { word })
    }

    /// Replaces the state of each value in these sets; fingerprints stay.
    pub fn change_values(&self, sets: PoolSpan, change: impl Fn(u64) -> u64) {
        for word in self.places_of(sets) {
            let _changed: Option<()> = word.step(|seen| {
                let fingerprint = seen & !STATE_MAX;
                let next = fingerprint | change(seen & STATE_MAX) & STATE_MAX;
                ((), if fingerprint == 0 { seen } else { next })
            });
        }
    }
}
