//! Even spacing of requests: each is released a fixed cost after the one before.
//!
//! State: one word, the last release in ns; 0 = none yet. There is no queue object: a request whose
//! turn comes within the longest wait takes that turn and waits for it.
//!
//! `cost = n / count` seconds, rounded. As in Sentinel it is rounded to whole ns where
//! `1000 mod round(count) ≠ 0` or `count > 1000`, and to whole ms elsewhere, with the clock read in
//! whole ms too: 3 and 2.5 are paced in ns, 7.5 in steps of 133 ms.

use crate::number::{NS_PER_MS, NS_PER_S, double, rounded, whole_ms};
use crate::quirks::Quirks;
use crate::verdict::Verdict;

/// A pacing rule ("rate limiter").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pacing {
    count: f64,
    max_wait_ns: u64,
    grain: Grain,
}

/// The step in which Sentinel reckons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grain {
    Nanosecond,
    Millisecond,
}

impl Pacing {
    /// `count` requests per second, each waiting at most `max_wait_ns`.
    pub fn new(count: f64, max_wait_ns: u64) -> Self {
        let in_ms = 1_000_u64.checked_rem(rounded(count)) == Some(0) && count <= 1_000.0;
        Self {
            count,
            max_wait_ns,
            grain: if in_ms {
                Grain::Millisecond
            } else {
                Grain::Nanosecond
            },
        }
    }

    /// Whether Sentinel fails to load this rule, and its whole list with it: it divides by
    /// `round(count)`. [`Pacing::step`] paces such a rule as any other.
    pub fn breaks_sentinel(count: f64) -> bool {
        count > 0.0 && rounded(count) == 0
    }

    /// Asks for `n` at `now_ns`; `n = 0` passes and leaves the word as it is.
    #[inline]
    pub fn step(&self, word: u64, now_ns: u64, n: u32) -> (Verdict, u64) {
        if n == 0 {
            return (Verdict::ADMIT, word);
        }
        if self.count.is_nan() || self.count <= 0.0 {
            return (Verdict::NEVER, word);
        }
        let n = f64::from(n);
        match self.grain {
            Grain::Nanosecond => {
                let cost_ns = rounded(double(NS_PER_S) * n / self.count);
                queue(word, now_ns, cost_ns, self.max_wait_ns)
            }
            Grain::Millisecond => {
                let cost_ns = in_ns(rounded(1_000.0 * n / self.count));
                queue(word, whole_ms(now_ns), cost_ns, self.max_wait_ns)
            }
        }
    }
}

/// Pacing at the rate of a warm-up bucket ("warm up + rate limiter").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtRate {
    max_wait_ns: u64,
    quirks: Quirks,
}

impl AtRate {
    /// Each request waits at most `max_wait_ns`. Sentinel reckons in whole ms, so that more than
    /// 2000 per second are not limited there.
    pub const fn new(max_wait_ns: u64, quirks: Quirks) -> Self {
        Self {
            max_wait_ns,
            quirks,
        }
    }

    /// Asks for `n` at `now_ns`, with `rate` (per second) from [`crate::warm_up::WarmUp::rate`].
    #[inline]
    pub fn step(&self, word: u64, now_ns: u64, n: u32, rate: f64) -> (Verdict, u64) {
        let share = f64::from(n) / rate;
        if self.quirks.wanted() {
            let cost_ns = in_ns(rounded(share * 1_000.0));
            queue(word, whole_ms(now_ns), cost_ns, self.max_wait_ns)
        } else {
            queue(
                word,
                now_ns,
                rounded(share * double(NS_PER_S)),
                self.max_wait_ns,
            )
        }
    }
}

fn in_ns(ms: u64) -> u64 {
    ms.saturating_mul(NS_PER_MS)
}

/// Takes the turn `cost_ns` after the last release, if its wait is at most `max_wait_ns`.
#[inline]
fn queue(last_ns: u64, now_ns: u64, cost_ns: u64, max_wait_ns: u64) -> (Verdict, u64) {
    let turn_ns = last_ns.saturating_add(cost_ns);
    if last_ns == 0 || turn_ns <= now_ns {
        return (Verdict::ADMIT, now_ns.max(1));
    }
    let wait_ns = turn_ns.saturating_sub(now_ns);
    if wait_ns > max_wait_ns {
        let retry_after_ns = (cost_ns < u64::MAX).then(|| wait_ns.saturating_sub(max_wait_ns));
        return (Verdict::Refuse { retry_after_ns }, last_ns);
    }
    (Verdict::Admit { wait_ns }, turn_ns)
}
