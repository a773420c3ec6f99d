//! Values of hot parameters: a set-associative table, one word for each value.
//!
//! A value's hash picks its set and its fingerprint. In a full set a newcomer takes the place of the
//! value that has most left, and begins with what the value with least left has: whoever cycles
//! through values gains nothing. Two values with the same fingerprint in a set (1 in 8,000 for a
//! full one) are charged together.

use tidegate_abi::board::SeatWord;
use tidegate_abi::ledger::value;
use tidegate_limits::param::STATE_MAX;

use super::Ledger;
use crate::board::{Board, Span};
use crate::sync::{Ordering, Word, fence};

const STATE_BITS: u32 = 48;
const RUNNING_MASK: u64 = (1 << 14) - 1;

/// The set of a value, and its fingerprint there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKey {
    set: u32,
    fingerprint: u16,
}

/// What a step makes of a value's state.
pub type Stepped<T> = (T, Option<u64>);

impl Ledger {
    /// The key of a value in the sets of a rule; `None` for a rule without sets.
    pub fn value_key(&self, sets: Span, hash: u64) -> Option<ValueKey> {
        // The upper half picks the set, the lower quarter is the fingerprint; 0 means free.
        let place = (hash >> 32).checked_rem(u64::from(sets.length))?;
        let set = sets.start.saturating_add(u32::try_from(place).ok()?);
        let fingerprint = u16::try_from(hash & 0xffff).ok()?.max(1);
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
        step: impl Fn(Option<u64>) -> Stepped<T>,
    ) -> Option<T> {
        let set = self.set(key)?;
        let mut answer = None;
        for _try in 0..value::WORDS {
            let (word, seen, state) = find(set, key.fingerprint, &left);
            let (given, next) = step(state);
            let Some(next) = next else { return Some(given) };
            let next = u64::from(key.fingerprint) << STATE_BITS | next & STATE_MAX;
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            // Relaxed: the word carries all there is.
            if word.exchange(seen, next, success, failure).is_ok() {
                answer = Some(given);
                break;
            }
        }
        answer
    }

    fn set(&self, key: ValueKey) -> Option<&'static [Word; value::WORDS]> {
        self.values.get(usize::try_from(key.set).ok()?)
    }

    /// Calls of a value that run now, over living seats.
    pub fn running(&self, board: &Board, key: ValueKey) -> u64 {
        let words = self.set(key).into_iter().flatten();
        words.fold(0, |sum, word| {
            // Acquire: pairs with the AcqRel of the exchange that announces a call.
            let run = Run::unpack(word.load(Ordering::Acquire));
            let counts = run.fingerprint == key.fingerprint && run.lives(board);
            sum.saturating_add(if counts { run.running } else { 0 })
        })
    }

    /// Announces a call of a value by a seat, sums all seats, retracts if that is over `limit`.
    /// `false` too if the set is full of values with calls that run.
    pub fn begin_run(&self, board: &Board, seat: (u32, u32), key: ValueKey, limit: u64) -> bool {
        let (begin, end) = (1, RUNNING_MASK);
        if self.running(board, key) >= limit || !self.change_run(board, seat, key, begin) {
            return false;
        }
        // SeqCst: orders the announcement before the sum, for all callers in one order.
        fence(Ordering::SeqCst);
        if self.running(board, key) <= limit {
            return true;
        }
        self.change_run(board, seat, key, end);
        false
    }

    /// Ends a call of a value.
    pub fn end_run(&self, board: &Board, seat: (u32, u32), key: ValueKey) {
        self.change_run(board, seat, key, RUNNING_MASK);
    }

    /// Adds to the calls of a value in the seat's own word; the sum is modulo 2^14.
    fn change_run(&self, board: &Board, seat: (u32, u32), key: ValueKey, change: u64) -> bool {
        let Some(words) = self.set(key) else {
            return false;
        };
        let mine = Run {
            fingerprint: key.fingerprint,
            seat: seat.0,
            generation: seat.1,
            running: 0,
        };
        for _try in 0..value::WORDS.saturating_mul(4) {
            let own = words.iter().find(|word| {
                let run = Run::unpack(word.load(Ordering::Relaxed));
                run.is_of(mine) && (change == 1 || run.running > 0)
            });
            let free = || {
                words.iter().find(|word| {
                    let run = Run::unpack(word.load(Ordering::Relaxed));
                    run.running == 0 || !run.lives(board)
                })
            };
            let Some(word) = own.or_else(free) else {
                return false;
            };
            let seen = word.load(Ordering::Relaxed);
            let held = Run::unpack(seen);
            let running = if held.is_of(mine) { held.running } else { 0 };
            let next = Run {
                running: running.wrapping_add(change) & RUNNING_MASK,
                ..mine
            };
            // AcqRel: pairs with the Acquire in `running`.
            if word
                .exchange(seen, next.pack(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return true;
            }
        }
        false
    }
}

/// The word of a value: its own, else a free one, else the one that has most left; with the state to
/// begin with.
fn find<'s>(
    set: &'s [Word; value::WORDS],
    fingerprint: u16,
    left: &impl Fn(u64) -> u64,
) -> (&'s Word, u64, Option<u64>) {
    let [first, ..] = set;
    let mut free = None;
    let mut most = (first, first.load(Ordering::Relaxed));
    let mut least = most.1;
    for word in set {
        let seen = word.load(Ordering::Relaxed);
        let held = seen >> STATE_BITS;
        if held == u64::from(fingerprint) {
            return (word, seen, Some(seen & STATE_MAX));
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
    match free {
        Some((word, seen)) => (word, seen, None),
        None => (most.0, most.1, Some(least & STATE_MAX)),
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
