//! Completions of one interval, all and bad, in one word.
//!
//! ```text
//! [epoch 20 | all 22 | bad 22]
//! ```
//!
//! One tumbling bucket, aligned to multiples of the interval: its edge forgets everything. The epoch
//! is modulo 2^20 (12 days with an interval of a second); a word that was idle for just that long
//! (within two intervals) counts what it holds. When a count is full (4,194,303 completions in one
//! interval) both are halved, which keeps their ratio; where the number of bad ones counts, both stop there.

use core::num::NonZeroU64;

use crate::number::quotient;
use crate::window::Age;

/// The largest count.
pub const COUNT_MAX: u32 = (1 << 22) - 1;
/// The largest "least number of requests" that a halved tally still reaches.
pub const REQUESTS_MAX: u32 = 1 << 21;

const EPOCH_MASK: u32 = (1 << 20) - 1;

/// A tally word taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct BreakerTally {
    epoch: u32,
    all: u32,
    bad: u32,
}

impl BreakerTally {
    /// The tally that `word` holds at `now_ns`; a word of another interval starts afresh, one that
    /// is newer by one or two (the reader is late) is used as it is.
    #[inline]
    pub const fn at(word: u64, now_ns: u64, interval_ns: NonZeroU64) -> Self {
        let epoch = (quotient(now_ns, interval_ns) & 0xf_ffff) as u32;
        let held = Self::of(word);
        match Age::of(held.epoch, epoch, EPOCH_MASK) {
            Age::Same | Age::Newer => held,
            Age::Previous | Age::Stale => Self {
                epoch,
                all: 0,
                bad: 0,
            },
        }
    }

    /// The word with one completion more where that takes no thought: it is of the epoch (see
    /// [`Interval::epoch`]) and its counts are not full. `None` says nothing but to look closely, with
    /// [`BreakerTally::at`].
    #[inline]
    pub const fn add_at_once(word: u64, epoch: u64, bad: bool) -> Option<u64> {
        // Without its epoch, the counts are left; with another one, more than counts can be.
        let counts = word.wrapping_sub(epoch << 44);
        let room = counts < (COUNT_MAX as u64) << 22;
        let room_for_bad = !bad || word & COUNT_MAX as u64 != COUNT_MAX as u64;
        if room && room_for_bad {
            Some(word.wrapping_add(1 << 22).wrapping_add(bad as u64))
        } else {
            None
        }
    }

    /// The counts of a word, whatever its epoch.
    #[inline]
    pub const fn of(word: u64) -> Self {
        Self {
            epoch: (word >> 44 & 0xf_ffff) as u32,
            all: (word >> 22 & 0x3f_ffff) as u32,
            bad: (word & 0x3f_ffff) as u32,
        }
    }

    /// The tally with one completion more; full counts stop where they are.
    #[inline]
    pub const fn add_or_stop(self, bad: bool) -> Self {
        Self {
            all: self.all.saturating_add((self.all < COUNT_MAX) as u32),
            bad: self
                .bad
                .saturating_add((bad && self.bad < COUNT_MAX) as u32),
            ..self
        }
    }

    /// The tally with one completion more; full counts are halved before.
    #[inline]
    pub const fn add(self, bad: bool) -> Self {
        let room = if self.all < COUNT_MAX {
            self
        } else {
            Self {
                all: self.all >> 1,
                bad: self.bad >> 1,
                ..self
            }
        };
        Self {
            all: room.all.saturating_add(1),
            bad: (room.bad.saturating_add(bad as u32)) & COUNT_MAX,
            ..room
        }
    }

    /// The same interval with nothing in it.
    pub const fn cleared(self) -> Self {
        Self {
            all: 0,
            bad: 0,
            ..self
        }
    }

    /// The word to store.
    #[inline]
    pub const fn word(self) -> u64 {
        (self.epoch as u64) << 44 | (self.all as u64) << 22 | self.bad as u64
    }

    /// Completions.
    #[inline]
    pub const fn all(self) -> u32 {
        self.all
    }

    /// Bad ones among them.
    #[inline]
    pub const fn bad(self) -> u32 {
        self.bad
    }

    /// Share of bad ones; 0 if there are none at all.
    #[inline]
    pub fn bad_ratio(self) -> f64 {
        f64::from(self.bad) / f64::from(self.all.max(1))
    }
}

/// The interval of a tally, made ready for a division at each completion: one multiplication instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// `ceil(2^(64 + shift) / interval)`; fits, since the interval is over `2^shift`.
    pub factor: u64,
    /// `ceil(log2(interval)) − 1`, at most 62.
    pub shift: u8,
}

impl Interval {
    /// The interval of that length; `None` for 1 ns and over 2^63 ns.
    ///
    /// Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), theorem
    /// 4.2 with 63 bits: exact for every time below 2^63 ns.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the shift is below 63 and the factor below 2^64"
    )]
    pub const fn new(interval_ns: NonZeroU64) -> Option<Self> {
        let bits = u64::BITS.wrapping_sub(interval_ns.get().wrapping_sub(1).leading_zeros());
        if bits == 0 || bits > 63 {
            return None;
        }
        let factor = (1_u128 << 63_u32.wrapping_add(bits)).div_ceil(interval_ns.get() as u128);
        Some(Self {
            factor: factor as u64,
            shift: bits.wrapping_sub(1) as u8,
        })
    }

    /// The epoch of a tally at `now_ns`; only its low 20 bits are in the word.
    #[inline]
    pub const fn epoch(self, now_ns: u64) -> u64 {
        let high = ((now_ns as u128).wrapping_mul(self.factor as u128) >> 64) as u64;
        high >> (self.shift & 63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_counts_are_halved_and_edges_forget() {
        let interval = NonZeroU64::new(1_000).unwrap();
        let full = BreakerTally {
            epoch: 5,
            all: COUNT_MAX,
            bad: COUNT_MAX,
        };
        let next = BreakerTally::at(full.word(), 5_999, interval).add(true);
        assert_eq!((next.all(), next.bad()), (REQUESTS_MAX, REQUESTS_MAX));
        assert_eq!(BreakerTally::at(full.word(), 6_000, interval).all(), 0);
        assert_eq!(BreakerTally::at(full.word(), 4_000, interval), full);
        let next = full.add_or_stop(true);
        assert_eq!((next.all(), next.bad()), (COUNT_MAX, COUNT_MAX));
        // A hostile word has more bad ones than completions.
        let hostile = BreakerTally { all: 0, ..full };
        assert_eq!(hostile.add(true).bad(), 0);
    }
}
