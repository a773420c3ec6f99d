//! A limit that holds in *every* window of its length, in one word.
//!
//! Time is cut into buckets as long as the window. A window that ends now holds the current bucket
//! and the tail of the previous one, so the question is how much of the previous bucket had passed
//! *before* the window began. The word keeps a lower bound of that as a straight line:
//!
//! ```text
//! passed in the previous bucket by its fraction x  ≥  limit · (x − lag), between 0 and its count
//! ```
//!
//! where `lag` is how far, as a share of the limit, the passes of that bucket ever fell behind the
//! line `limit · x`. It is noted at each pass (after the last one the count itself bounds the line)
//! and rounded up, so the bound is sound for every arrival pattern. A request is admitted only if
//!
//! ```text
//! current + n + previous − bound  ≤  limit
//! ```
//!
//! A limit that is offered more than it admits stays on the line and is used to 99 % and more from
//! 100 requests on; a burst after idle time may use the whole limit at once.
//!
//! ```text
//! [epoch 8 | previous COUNT | current COUNT | previous lag LAG | current lag LAG]
//! ```
//!
//! A word that was idle for 256 windows (within two) counts its old passes for up to four windows
//! more. A lowered limit holds at once. With a raised one the lags must be brought over ([`Strict::carry`]): a
//! steeper line claims more than has passed, and windows that began before the raise would hold up to the
//! amount of the raise more than the new limit.

use core::num::NonZeroU64;

use crate::number::{quotient, remainder};
use crate::window::Age;

/// The longest window, ns (73 minutes): the line is computed in 64 bits without overflow.
pub const WINDOW_MAX_NS: u64 = 1 << 42;
/// Parts of a request in which the line is computed.
const PARTS: u64 = 8;

/// A strict limit with counts of `COUNT` and lags of `LAG` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strict<const COUNT: u32, const LAG: u32> {
    limit: u32,
    window_ns: NonZeroU64,
}

/// For a rule's whole state word: limits up to 131,071, lag to 0.05 % of the limit.
pub type RuleLimit = Strict<17, 11>;
/// For the 48 bits beside a fingerprint (see [`crate::param`]): limits up to 16,383, lag to 1.6 %.
pub type ValueLimit = Strict<14, 6>;

/// A word taken apart, as seen from a time.
#[derive(Debug, Clone, Copy)]
struct StrictWord {
    epoch: u32,
    previous: u32,
    current: u32,
    previous_lag: u32,
    current_lag: u32,
    /// How far into the current bucket the reader is.
    offset_ns: u64,
}

impl<const COUNT: u32, const LAG: u32> Strict<COUNT, LAG> {
    /// The largest limit.
    pub const LIMIT_MAX: u32 = ones(COUNT);
    const LAG_MAX: u32 = ones(LAG);
    const PREVIOUS_LAG_AT: u32 = LAG;
    const CURRENT_AT: u32 = LAG.saturating_mul(2);
    const PREVIOUS_AT: u32 = Self::CURRENT_AT.saturating_add(COUNT);
    const EPOCH_AT: u32 = Self::PREVIOUS_AT.saturating_add(COUNT);

    /// A limit of `limit` in every window of `window_ns`; `None` if the limit is over
    /// [`Self::LIMIT_MAX`] or the window is not 1 to [`WINDOW_MAX_NS`] long.
    pub const fn new(limit: u32, window_ns: u64) -> Option<Self> {
        if limit > Self::LIMIT_MAX || window_ns > WINDOW_MAX_NS {
            return None;
        }
        match NonZeroU64::new(window_ns) {
            Some(window_ns) => Some(Self { limit, window_ns }),
            None => None,
        }
    }

    /// The limit.
    pub const fn limit(self) -> u32 {
        self.limit
    }

    /// The word after `n` passes at `now_ns`, if they keep the limit.
    #[inline]
    pub fn try_add(self, word: u64, now_ns: u64, n: u32) -> Option<u64> {
        let held = self.at(word, now_ns);
        let kept = held.previous.saturating_sub(self.bound(held));
        let sum = held.current.saturating_add(n).saturating_add(kept);
        if sum > self.limit {
            return None;
        }
        let next = StrictWord {
            current: held.current.saturating_add(n),
            current_lag: held.current_lag.max(self.lag(held)),
            ..held
        };
        Some(Self::pack(if n == 0 { held } else { next }))
    }

    /// The word without `n` passes that were admitted at `added_ns`.
    #[must_use]
    pub fn take_back(self, word: u64, now_ns: u64, n: u32, added_ns: u64) -> u64 {
        let mut held = self.at(word, now_ns);
        let age = Age::of(self.epoch(added_ns), held.epoch, 0xff);
        // Without them the bucket lay that much further below the line.
        let lag = self.lag_of(u64::from(n).saturating_mul(PARTS));
        match age {
            Age::Same | Age::Newer => {
                held.current = held.current.saturating_sub(n);
                held.current_lag = held.current_lag.saturating_add(lag).min(Self::LAG_MAX);
            }
            Age::Previous => {
                held.previous = held.previous.saturating_sub(n);
                held.previous_lag = held.previous_lag.saturating_add(lag).min(Self::LAG_MAX);
            }
            Age::Stale => {}
        }
        Self::pack(held)
    }

    /// The word of a limit of `from` as one of this limit: the steeper line lies nowhere above the old one. A
    /// limit that was lowered needs nothing.
    #[must_use]
    pub fn carry(self, word: u64, from: Self) -> u64 {
        let raise = self.limit.saturating_sub(from.limit);
        if raise == 0 {
            return word;
        }
        let held = Self::unpack(word, 0);
        let lag = |count: u32, lag: u32| match count {
            // Of an empty bucket the line says nothing.
            0 => lag,
            _ if lag >= Self::LAG_MAX => Self::LAG_MAX,
            _ => {
                let parts = u64::from(raise).saturating_mul(PARTS);
                self.lag_of(parts.saturating_add(from.lag_parts(lag)))
            }
        };
        Self::pack(StrictWord {
            previous_lag: lag(held.previous, held.previous_lag),
            current_lag: lag(held.current, held.current_lag),
            ..held
        })
    }

    /// How long after `now_ns` `n` passes fit if nobody else takes the room: 0 if they fit now,
    /// `None` if `n` alone is over the limit.
    pub fn fits_after_ns(self, word: u64, now_ns: u64, n: u32) -> Option<u64> {
        if n > self.limit {
            return None;
        }
        let mut held = self.at(word, now_ns);
        let mut edge_ns = now_ns.saturating_sub(remainder(now_ns, self.window_ns));
        for _bucket in 0..3 {
            if let Some(offset_ns) = self.offset_with_room(held, n) {
                let at_ns = edge_ns.saturating_add(offset_ns);
                return Some(at_ns.saturating_sub(now_ns));
            }
            held = StrictWord {
                previous: held.current,
                previous_lag: held.current_lag,
                current: 0,
                current_lag: 0,
                offset_ns: 0,
                ..held
            };
            edge_ns = edge_ns.saturating_add(self.window_ns.get());
        }
        Some(edge_ns.saturating_sub(now_ns))
    }

    fn epoch(self, now_ns: u64) -> u32 {
        (quotient(now_ns, self.window_ns) & 0xff) as u32
    }

    #[inline]
    fn at(self, word: u64, now_ns: u64) -> StrictWord {
        let epoch = self.epoch(now_ns);
        let offset_ns = remainder(now_ns, self.window_ns);
        let held = Self::unpack(word, offset_ns);
        match Age::of(held.epoch, epoch, 0xff) {
            Age::Same => held,
            Age::Newer => StrictWord {
                offset_ns: 0,
                ..held
            },
            Age::Previous => StrictWord {
                epoch,
                previous: held.current,
                previous_lag: held.current_lag,
                current: 0,
                current_lag: 0,
                offset_ns,
            },
            Age::Stale => Self::unpack(u64::from(epoch) << Self::EPOCH_AT, offset_ns),
        }
    }

    /// The line at an offset, in parts of a request, as a product yet to be divided by the window.
    fn line(self, offset_ns: u64) -> u64 {
        // 17 + 3 + 42 bits.
        u64::from(self.limit)
            .saturating_mul(PARTS)
            .saturating_mul(offset_ns)
    }

    /// The line at the end of a bucket, at least 1.
    fn line_end(self) -> u64 {
        u64::from(self.limit.max(1)).saturating_mul(PARTS)
    }

    /// A lag in parts of a request, rounded up.
    fn lag_parts(self, lag: u32) -> u64 {
        u64::from(lag)
            .saturating_mul(self.line_end())
            .div_ceil(1 << LAG)
    }

    /// The least that had passed of the previous bucket when it was as old as this one.
    #[inline]
    fn bound(self, held: StrictWord) -> u32 {
        if held.previous_lag >= Self::LAG_MAX {
            return 0;
        }
        let line = quotient(self.line(held.offset_ns), self.window_ns);
        let least = line.saturating_sub(self.lag_parts(held.previous_lag)) / PARTS;
        u32::try_from(least).unwrap_or(u32::MAX).min(held.previous)
    }

    /// How far the current bucket is behind the line, rounded up. The bound is a whole number, so
    /// until this moment it was below `current + 1` if the line was not above that.
    #[inline]
    fn lag(self, held: StrictWord) -> u32 {
        let line = self.line(held.offset_ns).div_ceil(self.window_ns.get());
        let passed = u64::from(held.current).saturating_add(1);
        self.lag_of(line.saturating_sub(passed.saturating_mul(PARTS)))
    }

    /// Parts of a request as a lag, rounded up.
    fn lag_of(self, parts: u64) -> u32 {
        let lag = (parts << LAG).div_ceil(self.line_end());
        u32::try_from(lag).unwrap_or(u32::MAX).min(Self::LAG_MAX)
    }

    /// The first offset, not before `held.offset_ns`, at which `n` more fit into this bucket.
    fn offset_with_room(self, held: StrictWord, n: u32) -> Option<u64> {
        let all = held.current.saturating_add(n).saturating_add(held.previous);
        let needed = all.saturating_sub(self.limit);
        if needed <= self.bound(held) {
            return Some(held.offset_ns);
        }
        if needed > held.previous || held.previous_lag >= Self::LAG_MAX {
            return None;
        }
        let parts = u64::from(needed)
            .saturating_mul(PARTS)
            .saturating_add(self.lag_parts(held.previous_lag));
        let offset_ns = parts
            .saturating_mul(self.window_ns.get())
            .div_ceil(self.line_end());
        (offset_ns < self.window_ns.get()).then_some(offset_ns)
    }

    fn unpack(word: u64, offset_ns: u64) -> StrictWord {
        let field = |shift: u32, bits: u32| {
            u32::try_from(word >> shift & u64::from(ones(bits))).unwrap_or(0)
        };
        StrictWord {
            current_lag: field(0, LAG),
            previous_lag: field(Self::PREVIOUS_LAG_AT, LAG),
            current: field(Self::CURRENT_AT, COUNT),
            previous: field(Self::PREVIOUS_AT, COUNT),
            epoch: (word >> Self::EPOCH_AT & 0xff) as u32,
            offset_ns,
        }
    }

    fn pack(held: StrictWord) -> u64 {
        u64::from(held.current_lag)
            | u64::from(held.previous_lag) << Self::PREVIOUS_LAG_AT
            | u64::from(held.current) << Self::CURRENT_AT
            | u64::from(held.previous) << Self::PREVIOUS_AT
            | u64::from(held.epoch) << Self::EPOCH_AT
    }
}

const fn ones(bits: u32) -> u32 {
    (1_u32 << bits).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_their_word() {
        assert_eq!(RuleLimit::EPOCH_AT + 8, u64::BITS);
        assert_eq!(ValueLimit::EPOCH_AT + 8, 48);
    }
}
