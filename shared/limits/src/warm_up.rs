//! A threshold that rises while traffic flows: a bucket of coldness that passes drain.
//!
//! With threshold `C` per second, period `P` in s and cold factor `F`:
//!
//! ```text
//! W = trunc(P·C) div (F−1)      tokens at which it is warm
//! M = W + trunc(2·P·C / (1+F))  tokens when fully cold
//! s = (F−1) / C / (M−W)         slope
//! rate(stored) = C below W, else nextUp(1 / ((stored−W)·s + 1/C)): from C at W to C/F at M
//! ```
//!
//! Once a second the bucket is filled for the time gone by and drained by what passed in the second
//! before. So the rate rises hyperbolically in the tokens, in steps of a second, and a node without
//! traffic is cold.
//!
//! ```text
//! [second of the last fill + 1: 32 | stored 32]
//! ```
//!
//! The second is that of the clock since its zero (136 years); 0 = never filled.

use crate::number::{NS_PER_S, double, whole, whole_u32};
use crate::quirks::Quirks;

/// A warm-up bucket's constants, see the head of this file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    count: f64,
    /// W.
    warm: u32,
    /// M.
    cold: u32,
    slope: f64,
    /// trunc(C) div F: below so many passes in a second a bucket above W is refilled.
    idle: u32,
    /// C/F < 1: Sentinel admits nothing while cold.
    never_warms: bool,
    quirks: Quirks,
}

impl WarmUp {
    /// Sentinel's cold factor.
    pub const COLD_FACTOR: u32 = 3;

    /// `count` per second when warm, reached in about `period_s`, from `count / cold_factor`; a
    /// factor of 1 or less stands for [`WarmUp::COLD_FACTOR`]. Products past 2^31 saturate.
    pub fn new(count: f64, period_s: u32, cold_factor: u32, quirks: Quirks) -> Self {
        let factor = if cold_factor > 1 {
            cold_factor
        } else {
            Self::COLD_FACTOR
        };
        let (period, f) = (f64::from(period_s), f64::from(factor));
        let warm = int(period * count)
            .checked_div(factor.saturating_sub(1))
            .unwrap_or(0);
        let cold = warm.saturating_add(int(2.0 * period * count / (1.0 + f)));
        Self {
            count,
            warm,
            cold,
            slope: (f - 1.0) / count / f64::from(cold.saturating_sub(warm)),
            idle: int(count).checked_div(factor).unwrap_or(0),
            never_warms: count / f < 1.0,
            quirks,
        }
    }

    /// The word after the fill of this second, if that is still to be done; `previous_pass` is what
    /// passed in the whole second before (a [`crate::window`] with buckets of a second).
    #[inline]
    pub fn fill(&self, word: u64, now_ns: u64, previous_pass: u32) -> u64 {
        let second = now_ns.checked_div(NS_PER_S).unwrap_or(0);
        let held = match last_fill(word) {
            None if self.warm > 0 && self.count > 0.0 => self.cold,
            None => 0,
            Some(last) if second > last => {
                self.refilled(stored(word), second.saturating_sub(last), previous_pass)
            }
            Some(_) => return word,
        };
        let left = held.min(self.cold).saturating_sub(previous_pass);
        second.saturating_add(1).min(u64::from(u32::MAX)) << 32 | u64::from(left)
    }

    fn refilled(&self, held: u32, seconds: u64, previous_pass: u32) -> u32 {
        if held < self.warm || (held > self.warm && previous_pass < self.idle) {
            let gone_ms = double(seconds.saturating_mul(1_000));
            return whole_u32(f64::from(held) + gone_ms * self.count / 1_000.0);
        }
        held
    }

    /// The word of a bucket with the numbers of `from` as one with these: as warm, or as far on its way
    /// from cold to warm, as it was. A bucket without a slope knew nothing of that; it becomes cold.
    #[must_use]
    pub fn carry(&self, word: u64, from: &Self) -> u64 {
        if last_fill(word).is_none() {
            return word;
        }
        let held = stored(word).min(from.cold);
        let carried = match held.checked_sub(from.warm) {
            _ if from.is_flat() => self.cold,
            Some(above) => self
                .warm
                .saturating_add(in_proportion(above, from.span(), self.span())),
            // Still less than what is no longer warm.
            None => in_proportion(held, from.warm, self.warm).min(self.warm.saturating_sub(1)),
        };
        word & !0xffff_ffff | u64::from(carried.min(self.cold))
    }

    /// The rate per second that the bucket allows now (q). Not a number for a bucket without a
    /// slope in Sentinel; the threshold itself otherwise.
    #[inline]
    pub fn rate(&self, word: u64) -> f64 {
        // No bucket is colder than cold, not even one that a higher threshold has left so full.
        let stored = stored(word).min(self.cold);
        if stored < self.warm || (self.is_flat() && !self.quirks.wanted()) {
            return self.count;
        }
        let above = f64::from(stored.saturating_sub(self.warm));
        (1.0 / (above * self.slope + 1.0 / self.count)).next_up()
    }

    /// The most that may be in the node's window with a request of `n`, where `passed` are in it
    /// now; `None` refuses everything.
    ///
    /// Where Sentinel never admits (`C/F < 1`), a cold bucket admits one request a second: any that
    /// finds the window empty, up to the threshold.
    #[inline]
    pub fn limit(&self, word: u64, passed: u32, n: u32) -> Option<u32> {
        let rate = self.rate(word);
        if rate.is_nan() {
            return None;
        }
        let limit = whole_u32(rate);
        if !self.never_warms || self.quirks.wanted() {
            return Some(limit);
        }
        let alone = if passed == 0 { n.max(1) } else { 1 };
        Some(limit.max(alone).min(whole_u32(self.count)))
    }

    /// Tokens from warm to cold.
    const fn span(&self) -> u32 {
        self.cold.saturating_sub(self.warm)
    }

    /// Whether cold and warm are the same, so that there is no slope.
    const fn is_flat(&self) -> bool {
        self.span() == 0
    }
}

/// As much of `to` as `part` is of `of`, rounded up; nothing of nothing.
fn in_proportion(part: u32, of: u32, to: u32) -> u32 {
    let product = u64::from(part).saturating_mul(u64::from(to));
    u32::try_from(product.div_ceil(u64::from(of.max(1)))).unwrap_or(u32::MAX)
}

/// A double as Java's `(int)` has it, for values that are not negative.
fn int(value: f64) -> u32 {
    u32::try_from(whole(value).min(0x7fff_ffff)).unwrap_or(u32::MAX)
}

fn last_fill(word: u64) -> Option<u64> {
    (word >> 32).checked_sub(1)
}

fn stored(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}
