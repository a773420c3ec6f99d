//! A node: the counters of one resource that all processes share.

use core::num::NonZeroU64;

use tidegate_abi::ledger::node as field;
use tidegate_limits::borrow::{self, BorrowedPasses};
use tidegate_limits::quirks::Quirks;
use tidegate_limits::statistics;
use tidegate_limits::window::{Age, BucketLength, COUNT_MAX, Window};

use super::LastRefused;
use crate::clock::Clock;
use crate::sync::{Ordering, Word};

/// Buckets of the pass window.
pub const BUCKET: BucketLength = BucketLength::HALF_SECOND;

/// Buckets of the passes by whole seconds.
const SECOND: BucketLength = match NonZeroU64::new(1_000_000_000) {
    Some(length) => BucketLength::new(length),
    None => BucketLength::HALF_SECOND,
};

/// What the pass window answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowAdmission {
    /// Counted in the bucket of that epoch.
    Admitted(u16),
    /// Over the limit, or no turn was got.
    Full {
        /// Passes in the window.
        passed: u32,
        /// Until room comes back, ns.
        retry_after_ns: u64,
    },
}

impl WindowAdmission {
    /// Whether the pass was, or would be, counted.
    #[inline(always)]
    pub const fn admitted(self) -> bool {
        matches!(self, Self::Admitted(_))
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

    /// Brings its pass window near.
    #[inline(always)]
    pub(crate) fn fetch(self) {
        crate::near::fetch(self.line);
    }

    /// Counts `count` passes, or finds the window full, where that takes no thought: nothing is borrowed,
    /// the bucket is the one of `now_ns` if they fit, and nobody else is at the word. `None` = nothing was
    /// counted: ask [`Node::admit`].
    #[inline(always)]
    pub fn admit_at_once(&self, now_ns: u64, count: u32, limit: u32) -> Option<WindowAdmission> {
        let word = &self.line[field::PASS_WINDOW];
        // Relaxed: the exchange checks what was read, and the word carries all there is.
        let (seen, epoch) = (word.load(Ordering::Relaxed), BUCKET.epoch(now_ns));
        if self.is_borrowed() {
            return None;
        }
        let Some(next) = Window::add_at_once(seen, epoch, count, limit) else {
            // Stores nothing, so a late reader does no harm: what looks stale to it refuses only what
            // does not fit into an empty window either.
            let window = Window::at(seen, epoch);
            let fits = window.try_add(count, limit).is_some();
            return (!fits).then(|| full(window, now_ns, count, limit));
        };
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        word.exchange(seen, next, success, failure).ok()?;
        Some(WindowAdmission::Admitted(epoch))
    }

    #[inline(always)]
    fn is_borrowed(self) -> bool {
        // Relaxed: a borrower stores its word before anybody may count on it.
        self.line[field::BORROWED].load(Ordering::Relaxed) != 0
    }

    /// Counts `count` passes if at most `limit` are in the window then: one compare-and-swap of the
    /// whole word, so no number of callers gets over the limit.
    pub fn admit<C: Clock>(
        &self,
        clock: &C,
        now_ns: u64,
        count: u32,
        limit: u32,
    ) -> WindowAdmission {
        let mut now_ns = now_ns;
        let admitted = self.line[field::PASS_WINDOW].step(|seen| {
            let window = window_at(seen, clock, &mut now_ns);
            match window.try_add(count, limit) {
                Some(next) => (Ok(next.epoch()), next.word()),
                None => (Err(window), seen),
            }
        });
        match admitted {
            Some(Ok(epoch)) => WindowAdmission::Admitted(epoch),
            Some(Err(window)) => full(window, now_ns, count, limit),
            None => WindowAdmission::Full {
                passed: 0,
                retry_after_ns: BUCKET.ns(),
            },
        }
    }

    /// Takes back passes that were counted when the bucket's epoch was `added`.
    pub fn take_back(&self, now_ns: u64, count: u32, added: u16) {
        let word = &self.line[field::PASS_WINDOW];
        // Without a turn the passes stay counted, which refuses a few more and admits none.
        let _turn: Option<()> = word.step(|seen| {
            let window = Window::at(seen, BUCKET.epoch(now_ns));
            ((), window.take_back(count, added).word())
        });
    }

    /// What [`Node::admit`] would answer, without counting.
    #[inline(always)]
    pub fn peek(&self, now_ns: u64, count: u32, limit: u32) -> WindowAdmission {
        let window = self.window(now_ns);
        match window.try_add(count, limit) {
            Some(next) => WindowAdmission::Admitted(next.epoch()),
            None => full(window, now_ns, count, limit),
        }
    }

    /// The pass window at `now_ns`.
    #[inline(always)]
    pub fn window(&self, now_ns: u64) -> Window {
        Window::at(
            self.line[field::PASS_WINDOW].load(Ordering::Relaxed),
            BUCKET.epoch(now_ns),
        )
    }

    /// The words that change with each pass.
    pub fn pass_words(&self) -> [u64; 3] {
        let fields = [field::PASS_WINDOW, field::PASS_SECONDS, field::BORROWED];
        // Relaxed: to see whether they change.
        fields.map(|field| crate::sync::peek(self.line, field))
    }

    /// Counts passes by whole seconds.
    pub fn count_second(&self, now_ns: u64, count: u32) {
        let _turn: Option<()> = self.line[field::PASS_SECONDS].step(|seen| {
            let window = Window::at(seen, SECOND.epoch(now_ns));
            ((), window.add(count).word())
        });
    }

    /// Passes in the whole second before the present one.
    pub fn previous_second(&self, now_ns: u64) -> u32 {
        let seen = self.line[field::PASS_SECONDS].load(Ordering::Relaxed);
        Window::at(seen, SECOND.epoch(now_ns)).previous()
    }

    /// Passes of the present window that were borrowed before it began.
    #[inline(always)]
    pub fn arrived(&self, now_ns: u64) -> u32 {
        self.borrowed(now_ns).arrived()
    }

    /// What a limit leaves for passes that were not borrowed. The limit of "not limited" stays that.
    #[inline(always)]
    pub fn room(&self, now_ns: u64, limit: u32) -> u32 {
        if limit >= COUNT_MAX || !self.is_borrowed() {
            return limit;
        }
        self.room_beside_loans(now_ns, limit)
    }

    #[inline(never)]
    fn room_beside_loans(self, now_ns: u64, limit: u32) -> u32 {
        limit.saturating_sub(self.arrived(now_ns))
    }

    /// Uses the present bucket as Sentinel does, see [`BorrowedPasses::at_use`]; before anything else is asked of it.
    #[cold]
    pub fn use_bucket(&self, now_ns: u64) {
        if self.is_borrowed() {
            let epoch = BUCKET.epoch(now_ns);
            let word = &self.line[field::BORROWED];
            let _turn: Option<()> =
                word.step(|seen| ((), BorrowedPasses::at_use(seen, epoch).word()));
        }
    }

    fn borrowed(self, now_ns: u64) -> BorrowedPasses {
        let epoch = BUCKET.epoch(now_ns);
        let word = &self.line[field::BORROWED];
        if word.load(Ordering::Relaxed) == 0 {
            return BorrowedPasses::at(0, epoch);
        }
        // Stored before anything is admitted into a new bucket: a late reader then cannot borrow
        // for a bucket that is already in use.
        let held = word.step(|seen| {
            let held = BorrowedPasses::at(seen, epoch);
            (held, held.word())
        });
        held.unwrap_or_else(|| BorrowedPasses::at(word.load(Ordering::Relaxed), epoch))
    }

    /// Borrows `count` passes of the next half second for a request that found the window full, and
    /// gives the wait until then, ns.
    pub fn borrow<C: Clock + ?Sized>(
        &self,
        clock: &C,
        now_ns: u64,
        (count, limit): (u32, u32),
        quirks: Quirks,
    ) -> Option<u64> {
        let epoch = BUCKET.epoch(now_ns);
        let request = borrow::BorrowRequest {
            n: count,
            now_ns,
            bucket: BUCKET,
            max_wait_ns: borrow::MAX_WAIT_NS,
            quirks,
        };
        let word = &self.line[field::BORROWED];
        let wait = word.step(|seen| {
            let held = BorrowedPasses::at(seen, epoch);
            match held.try_borrow(request, self.window(now_ns), limit) {
                Some((wait_ns, next)) => (Some(wait_ns), next.word()),
                None => (None, seen),
            }
        });
        let wait_ns = wait.flatten()?;
        // Whoever counts in the next half second read its clock first and this word then. While it has
        // not begun, they will all see the loan.
        if BUCKET.epoch(clock.now_ns()) == epoch {
            return Some(wait_ns);
        }
        let _turn: Option<()> = word.step(|seen| {
            let held = BorrowedPasses::at(seen, BUCKET.epoch(now_ns));
            ((), held.give_back(count, epoch).word())
        });
        None
    }

    /// Counts a request that ended well: successes, their response time and the least of those.
    pub fn count_success(&self, now_ns: u64, count: u32, rt_ns: u64) {
        let epoch = BUCKET.epoch(now_ns);
        let place = statistics::place(epoch);
        let _turn: Option<()> = self.line[field::SUCCESS_WINDOW]
            .step(|seen| ((), Window::at(seen, epoch).add(count).word()));
        let write = |fields: [usize; 2], step: fn(u64, u16, u64) -> u64, value: u64| {
            let word = fields.get(place).and_then(|field| self.line.get(*field));
            let _turn = word.and_then(|word| word.step(|seen| ((), step(seen, epoch, value))));
        };
        write(field::RT_US, statistics::add, rt_ns / 1_000);
        write(field::LEAST_RT_MS, statistics::add_least, rt_ns / 1_000_000);
    }

    /// Average response time of the last second, ms; 0 without a success.
    pub fn average_rt_ms(&self, now_ns: u64) -> f64 {
        let sum = statistics::sum(self.pair(field::RT_US), BUCKET.epoch(now_ns));
        statistics::average_rt_ms(sum, self.successes(now_ns).sum())
    }

    /// Least response time of the last second, ms, as the system rules have it.
    pub fn least_rt_ms(&self, now_ns: u64) -> u64 {
        statistics::least_rt_ms(self.pair(field::LEAST_RT_MS), BUCKET.epoch(now_ns))
    }

    /// Requests that ended well in the last second.
    pub fn successes(&self, now_ns: u64) -> Window {
        let seen = self.line[field::SUCCESS_WINDOW].load(Ordering::Relaxed);
        Window::at(seen, BUCKET.epoch(now_ns))
    }

    fn pair(self, fields: [usize; 2]) -> [u64; 2] {
        fields.map(|field| crate::sync::peek(self.line, field))
    }

    /// Counts what the plain concurrency rule refused, as often as the request stands for, or on the inbound node
    /// a system rule, and keeps the value measured and the limit.
    #[cold]
    pub fn count_refused(&self, count: u32, (value, limit): (u32, u32), now_ns: u64) {
        self.line[field::REFUSED].count(u64::from(count));
        // Relaxed: figures for people, each whole by itself.
        self.line[field::LAST].store(crate::board::halves(value, limit), Ordering::Relaxed);
        self.line[field::LAST_NS].store(now_ns, Ordering::Relaxed);
    }

    /// Whether [`Node::count_refused`] has counted anything in the last tenth of a second.
    #[inline(always)]
    pub fn refused_lately(&self, now_ns: u64) -> bool {
        const LATELY_NS: u64 = 100_000_000;
        // Relaxed: a hint. Never is 0, and long ago on any clock that has run for as long.
        let last_ns = self.line[field::LAST_NS].load(Ordering::Relaxed);
        last_ns != 0 && now_ns.saturating_sub(last_ns) < LATELY_NS
    }

    /// Keeps the value measured and the limit of a refusal by the plain QPS rule.
    #[inline(always)]
    pub fn note_full(&self, (value, limit): (u32, u32), now_ns: u64) {
        // Relaxed: figures for people, each whole by itself.
        self.line[field::QPS_LAST].store(crate::board::halves(value, limit), Ordering::Relaxed);
        self.line[field::QPS_LAST_NS].store(now_ns, Ordering::Relaxed);
    }

    /// The last refusal by the plain QPS rule.
    pub fn last_full(&self) -> Option<LastRefused> {
        LastRefused::of(&self.line[field::QPS_LAST], &self.line[field::QPS_LAST_NS])
    }

    /// What [`Node::count_refused`] has counted, and the last of it.
    pub fn refused(&self) -> (u64, Option<LastRefused>) {
        let count = self.line[field::REFUSED].load(Ordering::Relaxed);
        let last = LastRefused::of(&self.line[field::LAST], &self.line[field::LAST_NS]);
        (count, last)
    }

    /// Counts what a plain rule in observe mode would have refused, or on the inbound node a system rule,
    /// and keeps the value measured and the limit.
    pub fn count_observed(&self, concurrency: bool, (value, limit): (u32, u32), now_ns: u64) {
        let one = if concurrency { 1 << 32 } else { 1 };
        self.line[field::OBSERVED].count(one);
        // Relaxed: figures for people, each whole by itself.
        self.line[field::OBSERVED_LAST]
            .store(crate::board::halves(value, limit), Ordering::Relaxed);
        self.line[field::OBSERVED_LAST_NS].store(now_ns, Ordering::Relaxed);
    }

    /// The last of what [`Node::count_observed`] has counted.
    pub fn last_observed(&self) -> Option<LastRefused> {
        let last = &self.line[field::OBSERVED_LAST];
        LastRefused::of(last, &self.line[field::OBSERVED_LAST_NS])
    }

    /// What plain QPS and concurrency rules in observe mode would have refused, free-running.
    pub fn observed(&self) -> (u32, u32) {
        crate::board::split(self.line[field::OBSERVED].load(Ordering::Relaxed))
    }
}

/// The window in a word. A word that looks stale may only be newer than a caller that was held up
/// since it read its clock; such a caller must not start the word afresh, so it looks again.
#[inline(always)]
fn window_at<C: Clock>(word: u64, clock: &C, now_ns: &mut u64) -> Window {
    if word != 0 && matches!(Window::age(word, BUCKET.epoch(*now_ns)), Age::Stale) {
        *now_ns = clock.now_ns().max(*now_ns);
    }
    Window::at(word, BUCKET.epoch(*now_ns))
}

#[inline]
fn full(window: Window, now_ns: u64, count: u32, limit: u32) -> WindowAdmission {
    let retry_after_ns = window
        .fits_after_ns(count, limit, now_ns, BUCKET)
        .unwrap_or_else(|| BUCKET.ns().saturating_mul(2));
    WindowAdmission::Full {
        passed: window.sum(),
        retry_after_ns,
    }
}
