//! Values of hot parameters: a set-associative table, one word for each value.
//!
//! A value's hash picks its set and its fingerprint. In a full set a newcomer takes the place of the
//! value that has most left, and begins with what the value with least left has: whoever cycles
//! through values gains nothing. Two values with the same fingerprint in a set (1 in 8,000 for a
//! full one) are charged together.

use core::num::NonZeroU16;

use tidegate_abi::board::SeatWord;
use tidegate_abi::ledger::value;
use tidegate_limits::param::STATE_MAX;

use super::Ledger;
use crate::board::{Board, PoolSpan};
use crate::sync::{Ordering, Word, fence};

const STATE_BITS: u32 = 48;
const RUNNING_MASK: u64 = (1 << 14) - 1;

/// How often a step is tried against other writers of its set; each failed try means that another
/// caller got on.
const TRIES: u32 = 256;
/// How often callers that announced at the same time, and had to retract for each other, try again.
const TRIES_TO_BEGIN: u32 = 16;

/// The set of a value, and its fingerprint there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKey {
    set: u32,
    /// Not zero, so that "no value" takes no room of its own.
    fingerprint: NonZeroU16,
}

/// What a step makes of a value's state.
pub type StepResult<T> = (T, Option<u64>);

impl Ledger {
    /// The key of a value in the sets of a rule; `None` for a rule without sets.
    pub fn value_key(&self, sets: PoolSpan, hash: u64) -> Option<ValueKey> {
        // The upper half picks the set, the lower quarter is the fingerprint; 0 means free.
        let place = (hash >> 32).checked_rem(u64::from(sets.length))?;
        let set = sets.start.saturating_add(u32::try_from(place).ok()?);
        let fingerprint = u16::try_from(hash & 0xffff).ok()?;
        let fingerprint = NonZeroU16::new(fingerprint).unwrap_or(NonZeroU16::MIN);
        Some(ValueKey { set, fingerprint })
    }

    /// Runs a step on a value's state (`None` at first sight) and stores what it makes of it.
    ///
    /// `left` says how much a state has left, to choose who makes room for whom. `None` if other
    /// writers won every try, or there is no such set.
    pub fn step_value<T>(
        &self,
        key: ValueKey,
        left: impl Fn(u64) -> u64,
        step: impl Fn(Option<u64>) -> StepResult<T>,
    ) -> Option<T> {
        let set = self.set(key)?;
        for _try in 0..TRIES {
            let fingerprint = key.fingerprint.get();
            let place = find(set, fingerprint, &left);
            let (given, next) = step(place.state);
            let Some(next) = next else { return Some(given) };
            let next = u64::from(fingerprint) << STATE_BITS | next & STATE_MAX;
            if !place.put(next) {
                continue;
            }
            // SeqCst: orders a claim before the look for another, for all claimants in one order.
            fence(Ordering::SeqCst);
            if place.is_own || !place.has_twin(set, fingerprint) {
                return Some(given);
            }
            place.restore(next);
        }
        None
    }

    fn set(&self, key: ValueKey) -> Option<&'static [Word; value::WORDS]> {
        self.values.get(usize::try_from(key.set).ok()?)
    }

    /// The words of a set, for tests of what stands there.
    #[cfg(all(test, loom))]
    pub(crate) fn value_words(&self, set: usize) -> &'static [Word] {
        self.values.get(set).map_or(&[], |set| set)
    }

    /// Calls of a value that run now, over living seats.
    pub fn running(&self, board: &Board, key: ValueKey) -> u64 {
        let words = self.set(key).into_iter().flatten();
        words.fold(0, |sum, word| {
            // Acquire: pairs with the AcqRel of the exchange that announces a call.
            let run = Run::unpack(word.load(Ordering::Acquire));
            let counts = run.fingerprint == key.fingerprint.get() && run.lives(board);
            sum.saturating_add(if counts { run.running } else { 0 })
        })
    }

    /// Announces a call of a value by a seat, sums all seats, retracts if that is over `limit`; callers
    /// that retract for each other try again. `false` too if the set is full of values with calls
    /// that run.
    pub fn begin_run(&self, board: &Board, seat: (u32, u32), key: ValueKey, limit: u64) -> bool {
        for _try in 0..TRIES_TO_BEGIN {
            if self.running(board, key) >= limit || !self.announce_run(board, seat, key) {
                return false;
            }
            // SeqCst: orders the announcement before the sum, for all callers in one order.
            fence(Ordering::SeqCst);
            if self.running(board, key) <= limit {
                return true;
            }
            self.end_run(seat, key);
            core::hint::spin_loop();
        }
        false
    }

    /// Adds a call to the seat's own word, or claims one that nobody needs.
    fn announce_run(&self, board: &Board, seat: (u32, u32), key: ValueKey) -> bool {
        let mine = Run::none_of(seat, key);
        self.change_run(key, |words| {
            let is_own = |(_, run): &(&Word, Run)| run.is_of(mine);
            let is_free = |(_, run): &(&Word, Run)| run.running == 0 || !run.lives(board);
            let own = words.iter().find(|place| is_own(place));
            let (word, seen) = *own.or_else(|| words.iter().find(|place| is_free(place)))?;
            let held = if seen.is_of(mine) { seen.running } else { 0 };
            let running = held.saturating_add(1);
            let next = Run { running, ..mine };
            (running <= RUNNING_MASK).then_some((word, seen, next))
        })
    }

    /// Ends a call of a value. Where the seat has none (the set was given to another rule meanwhile),
    /// nothing happens.
    pub fn end_run(&self, seat: (u32, u32), key: ValueKey) {
        let mine = Run::none_of(seat, key);
        let _ended: bool = self.change_run(key, |words| {
            let is_own = |(_, run): &&(&Word, Run)| run.is_of(mine) && run.running > 0;
            let (word, seen) = *words.iter().find(is_own)?;
            let running = seen.running.saturating_sub(1);
            Some((word, seen, Run { running, ..mine }))
        });
    }

    /// Ends all calls of a seat in some sets: whoever made them is gone, and the seat goes on.
    pub fn end_runs(&self, sets: PoolSpan, (seat, generation): (u32, u32)) {
        for word in self.places_of(sets) {
            let _ended: Option<()> = word.step(|seen| {
                let run = Run::unpack(seen);
                let is_own = run.seat == seat && run.generation == generation;
                ((), if is_own { 0 } else { seen })
            });
        }
    }

    /// Replaces one word of a set by what `choose` makes of all of them. What it chose by is what is
    /// replaced: a word that another seat took meanwhile is left alone.
    fn change_run<'s>(
        &'s self,
        key: ValueKey,
        choose: impl Fn(&[(&'s Word, Run); value::WORDS]) -> Option<(&'s Word, Run, Run)>,
    ) -> bool {
        let Some(set) = self.set(key) else {
            return false;
        };
        for _try in 0..TRIES {
            // Relaxed: the exchange checks what was read.
            let look = |word: &'s Word| (word, Run::unpack(word.load(Ordering::Relaxed)));
            let Some((word, seen, next)) = choose(&set.each_ref().map(look)) else {
                return false;
            };
            // AcqRel: pairs with the Acquire in `running`.
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if word
                .exchange(seen.pack(), next.pack(), success, failure)
                .is_ok()
            {
                return true;
            }
        }
        false
    }
}

/// Where a value's state stands, or is to stand.
struct Place<'s> {
    word: &'s Word,
    seen: u64,
    /// The state to go on from.
    state: Option<u64>,
    /// Whether the word is the value's already.
    is_own: bool,
}

impl Place<'_> {
    fn put(&self, next: u64) -> bool {
        // Relaxed: the word carries all there is.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.word
            .exchange(self.seen, next, success, failure)
            .is_ok()
    }

    /// Whether another caller claimed a word for the same value at the same time: two words would be
    /// two limits. Of two claimants at least one sees the other, and whoever does takes its claim
    /// back.
    fn has_twin(&self, set: &[Word; value::WORDS], fingerprint: u16) -> bool {
        set.iter().any(|word| {
            !core::ptr::eq(word, self.word)
                && word.load(Ordering::Relaxed) >> STATE_BITS == u64::from(fingerprint)
        })
    }

    /// Puts back what a claim replaced, unless others go on from the claim already.
    fn restore(&self, next: u64) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let _others_go_on = self.word.exchange(next, self.seen, success, failure);
        core::hint::spin_loop();
    }
}

/// The word of a value: its own, else a free one, else the one that has most left; with the state to
/// begin with.
fn find<'s>(
    set: &'s [Word; value::WORDS],
    fingerprint: u16,
    left: &impl Fn(u64) -> u64,
) -> Place<'s> {
    let [first, ..] = set;
    let mut free = None;
    let mut most = (first, first.load(Ordering::Relaxed));
    let mut least = most.1;
    for word in set {
        let seen = word.load(Ordering::Relaxed);
        let held = seen >> STATE_BITS;
        if held == u64::from(fingerprint) {
            return Place {
                word,
                seen,
                state: Some(seen & STATE_MAX),
                is_own: true,
            };
        }
        if held == 0 {
            free = free.or(Some((word, seen)));
        }
        if left(seen & STATE_MAX) > left(most.1 & STATE_MAX) {
            most = (word, seen);
        }
        if left(seen & STATE_MAX) < left(least & STATE_MAX) {
            least = seen;
        }
    }
    let ((word, seen), state) = match free {
        Some(place) => (place, None),
        None => (most, Some(least & STATE_MAX)),
    };
    Place {
        word,
        seen,
        state,
        is_own: false,
    }
}

/// Calls of a value by one seat: `[fingerprint 16 | seat 10 | seat generation 24 | running 14]`.
#[derive(Debug, Clone, Copy)]
struct Run {
    fingerprint: u16,
    seat: u32,
    generation: u32,
    running: u64,
}

impl Run {
    /// A seat's word of a value without any call.
    const fn none_of(seat: (u32, u32), key: ValueKey) -> Self {
        Self {
            fingerprint: key.fingerprint.get(),
            seat: seat.0,
            generation: seat.1,
            running: 0,
        }
    }

    const fn unpack(word: u64) -> Self {
        Self {
            fingerprint: (word >> 48 & 0xffff) as u16,
            seat: (word >> 38 & 0x3ff) as u32,
            generation: (word >> 14 & 0x00ff_ffff) as u32,
            running: word & RUNNING_MASK,
        }
    }

    const fn pack(self) -> u64 {
        (self.fingerprint as u64) << 48
            | (self.seat as u64 & 0x3ff) << 38
            | (self.generation as u64 & 0x00ff_ffff) << 14
            | self.running & RUNNING_MASK
    }

    const fn is_of(self, other: Self) -> bool {
        self.fingerprint == other.fingerprint
            && self.seat == other.seat
            && self.generation == other.generation
    }

    fn lives(self, board: &Board) -> bool {
        board.seat(self.seat)
            == SeatWord {
                live: true,
                generation: self.generation,
            }
    }
}
