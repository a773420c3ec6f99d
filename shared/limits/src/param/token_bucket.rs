//! A bucket of tokens per value that is refilled at once, when its duration has passed.
//!
//! With limit `L` per duration `D` (ms), capacity `cap = L + burst` and `e` ms since the last refill:
//!
//! ```text
//! first sight   tokens = cap − n
//! e ≤ D         tokens −= n
//! e > D         tokens = min(cap, tokens + (e·L) div D) − n, and this is the last refill
//! ```
//!
//! each only if that stays at 0 or more. Up to twice the limit passes in a short span.
//!
//! ```text
//! state: [stamp 26 | tokens 22]
//! ```
//!
//! * **stamp**: time of the last refill in ms, modulo 2^26 (18.6 hours), for durations up to 70
//!   minutes; for longer ones in 2, 4, 8, … ms, so that at least 16 durations fit. A value that was
//!   idle for just that long (from a second before to a duration after) is not refilled yet; it
//!   never gets more for it.
//! * **tokens**: up to [`TOKENS_MAX`]. A limit and burst that exceed it together stand for "not
//!   limited".

use core::num::NonZeroU64;

use crate::number::{MS, NS_PER_MS, quotient};
use crate::verdict::Verdict;

/// The largest capacity of a bucket (4,194,303).
pub const TOKENS_MAX: u32 = (1 << 22) - 1;

const TOKEN_BITS: u32 = 22;
const STAMP_MASK: u64 = (1 << 26) - 1;
/// A stamp that is ahead of the clock by up to so many units was written by a reader that is
/// further on.
const LATE_UNITS: u64 = 1_000;

/// The bucket of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    limit: u32,
    capacity: u32,
    duration_ms: NonZeroU64,
    /// A stamp counts units of 2^shift ms.
    shift: u32,
}

/// A state taken apart.
#[derive(Debug, Clone, Copy)]
struct BucketState {
    stamp: u64,
    tokens: u32,
}

impl TokenBucket {
    /// `limit` per `duration_s` with `burst` on top; a duration of 0 counts as a second.
    pub fn new(limit: u32, burst: u32, duration_s: u32) -> Self {
        let duration = u64::from(duration_s.max(1)).saturating_mul(1_000);
        let bits = u64::BITS.saturating_sub(duration.leading_zeros());
        Self {
            limit,
            capacity: limit.saturating_add(burst),
            duration_ms: NonZeroU64::new(duration).unwrap_or(NonZeroU64::MIN),
            shift: bits.saturating_sub(TOKEN_BITS),
        }
    }

    /// Takes `n` tokens at `now_ns`; gives the new state, `None` where nothing changes.
    #[inline]
    pub fn step(&self, state: Option<u64>, now_ns: u64, n: u32) -> (Verdict, Option<u64>) {
        if self.limit == 0 || (n > self.capacity && !self.is_unlimited()) {
            return (Verdict::NEVER, None);
        }
        if self.is_unlimited() {
            return (Verdict::ADMIT, None);
        }
        let held = self.at(state, now_ns);
        match held.tokens.checked_sub(n) {
            Some(tokens) => (Verdict::ADMIT, Some(BucketState { tokens, ..held }.pack())),
            None => (self.refuse(state, now_ns, n), None),
        }
    }

    /// Tokens that a request would find, without taking any. A newcomer that takes another value's
    /// place in a full table begins with the least of these.
    #[inline]
    pub fn tokens(&self, state: Option<u64>, now_ns: u64) -> u32 {
        if self.is_unlimited() {
            return u32::MAX;
        }
        self.at(state, now_ns).tokens
    }

    /// The state of a value first seen now that begins with `tokens`, at most the capacity.
    pub fn begin_with(&self, tokens: u32, now_ns: u64) -> u64 {
        BucketState {
            stamp: self.units(now_ns) & STAMP_MASK,
            tokens: tokens.min(self.capacity).min(TOKENS_MAX),
        }
        .pack()
    }

    /// Whether limit and burst are past what a word holds.
    pub const fn is_unlimited(&self) -> bool {
        self.capacity > TOKENS_MAX
    }

    fn units(&self, now_ns: u64) -> u64 {
        quotient(now_ns, MS) >> self.shift
    }

    /// The state at `now_ns`, refilled if the duration has passed.
    #[inline]
    fn at(&self, state: Option<u64>, now_ns: u64) -> BucketState {
        let stamp = self.units(now_ns) & STAMP_MASK;
        let Some(held) = state.map(BucketState::unpack) else {
            return BucketState {
                stamp,
                tokens: self.capacity,
            };
        };
        let gone_ms = held.age(stamp) << self.shift;
        if gone_ms <= self.duration_ms.get() {
            // A rule whose limit was lowered meanwhile holds no more than it would if it were full.
            let tokens = held.tokens.min(self.capacity);
            return BucketState { tokens, ..held };
        }
        let added = quotient(
            gone_ms.saturating_mul(u64::from(self.limit)),
            self.duration_ms,
        );
        let tokens = u64::from(held.tokens).saturating_add(added);
        let capacity = u64::from(self.capacity);
        BucketState {
            stamp,
            tokens: u32::try_from(tokens.min(capacity)).unwrap_or(self.capacity),
        }
    }

    /// The refusal, with the time until the refill that brings enough.
    fn refuse(&self, state: Option<u64>, now_ns: u64, n: u32) -> Verdict {
        let held = state.map_or_else(|| self.at(None, now_ns), BucketState::unpack);
        let missing = u64::from(n.saturating_sub(held.tokens));
        let enough_ms = missing
            .saturating_mul(self.duration_ms.get())
            .div_ceil(u64::from(self.limit.max(1)));
        let due_ms = enough_ms.max(self.duration_ms.get().saturating_add(1));
        let due = due_ms.div_ceil(1 << self.shift);
        let now = self.units(now_ns);
        let to_go = due.saturating_sub(held.age(now & STAMP_MASK));
        let at_ns = (now.saturating_add(to_go) << self.shift).saturating_mul(NS_PER_MS);
        Verdict::Refuse {
            retry_after_ns: Some(at_ns.saturating_sub(now_ns)),
        }
    }
}

impl BucketState {
    /// Units since the stamp.
    fn age(self, now: u64) -> u64 {
        let age = now.wrapping_sub(self.stamp) & STAMP_MASK;
        if age > STAMP_MASK.saturating_sub(LATE_UNITS) {
            0
        } else {
            age
        }
    }

    const fn unpack(state: u64) -> Self {
        Self {
            stamp: state >> TOKEN_BITS & STAMP_MASK,
            tokens: (state & 0x3f_ffff) as u32,
        }
    }

    const fn pack(self) -> u64 {
        self.stamp << TOKEN_BITS | self.tokens as u64
    }
}
