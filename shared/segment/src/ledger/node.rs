//! A node: the counters of one resource that all processes share.

use tidegate_abi::ledger::node as field;
use tidegate_limits::window::{Age, BucketLength, Window};

use crate::clock::Clock;
use crate::sync::{Ordering, Word};

/// Buckets of the pass window.
const BUCKET: BucketLength = BucketLength::HALF_SECOND;

/// How often an admission is tried against other writers of the word. Each failed try means that
/// another caller got on; past this many the caller is told to come again.
const TRIES: u32 = 256;

/// What the pass window answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Counted.
    Admitted,
    /// Over the limit, or no turn was got.
    Full {
        /// Passes in the window.
        passed: u32,
        /// Until room comes back, ns.
        retry_after_ns: u64,
    },
}

impl Admission {
    /// Whether the pass was, or would be, counted.
    #[inline]
    pub const fn admitted(self) -> bool {
        matches!(self, Self::Admitted)
    }
}

/// The counters of one resource that all processes share.
#[derive(Clone, Copy)]
pub struct Node {
    line: &'static [Word; field::WORDS],
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Node {
    pub(super) const fn over(line: &'static [Word; field::WORDS]) -> Self {
        Self { line }
    }

    /// Counts `count` passes if at most `limit` are in the window then: one compare-and-swap of the
    /// whole word, so no number of callers gets over the limit.
    #[inline]
    pub fn admit<C: Clock>(&self, clock: &C, now_ns: u64, count: u32, limit: u32) -> Admission {
        let word = &self.line[field::PASS_WINDOW];
        let mut now_ns = now_ns;
        // Relaxed: the compare-and-swap checks what was read.
        let mut seen = word.load(Ordering::Relaxed);
        for _try in 0..TRIES {
            let window = window_at(seen, clock, &mut now_ns);
            let Some(next) = window.try_add(count, limit) else {
                return full(window, now_ns, count, limit);
            };
            // Relaxed: the word carries all there is; it publishes nothing else.
            match word.exchange_weak(seen, next.word(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_before) => return Admission::Admitted,
                Err(found) => seen = found,
            }
        }
        Admission::Full {
            passed: 0,
            retry_after_ns: BUCKET.ns(),
        }
    }

    /// What [`Node::admit`] would answer, without counting.
    #[inline]
    pub fn peek(&self, now_ns: u64, count: u32, limit: u32) -> Admission {
        let seen = self.line[field::PASS_WINDOW].load(Ordering::Relaxed);
        let window = Window::at(seen, BUCKET.epoch(now_ns));
        match window.try_add(count, limit) {
            Some(_counted) => Admission::Admitted,
            None => full(window, now_ns, count, limit),
        }
    }

    /// Passes in the window, for people.
    pub fn passed_in_window(&self, now_ns: u64) -> u32 {
        let seen = self.line[field::PASS_WINDOW].load(Ordering::Relaxed);
        Window::at(seen, BUCKET.epoch(now_ns)).sum()
    }

    /// Counts what a rule in observe mode would have refused.
    pub fn count_observed(&self, concurrency: bool) {
        let one = if concurrency { 1 << 32 } else { 1 };
        self.line[field::OBSERVED].count(one);
    }

    /// What QPS and concurrency rules in observe mode would have refused, free-running.
    pub fn observed(&self) -> (u32, u32) {
        crate::board::split(self.line[field::OBSERVED].load(Ordering::Relaxed))
    }
}

/// The window in a word. A word that looks stale may only be newer than a caller that was held
/// up since it read its clock; such a caller must not start the word afresh, so it looks again.
#[inline]
fn window_at<C: Clock>(word: u64, clock: &C, now_ns: &mut u64) -> Window {
    if matches!(Window::age(word, BUCKET.epoch(*now_ns)), Age::Stale) {
        *now_ns = clock.now_ns().max(*now_ns);
    }
    Window::at(word, BUCKET.epoch(*now_ns))
}

#[cold]
fn full(window: Window, now_ns: u64, count: u32, limit: u32) -> Admission {
    let retry_after_ns = window
        .fits_after_ns(count, limit, now_ns, BUCKET)
        .unwrap_or_else(|| BUCKET.ns().saturating_mul(2));
    Admission::Full {
        passed: window.sum(),
        retry_after_ns,
    }
}
