//! Callers that hold no permit: the scope's allowed QPS, with a burst of one bucket.

use core::num::NonZeroU64;

use tidegate_abi::decision::{Reason, ScopeState};
use tidegate_limits::window::{BucketLength, Window};

use super::{Gate, Refusal};
use crate::clock::Clock;
use crate::sync::Ordering;

/// Two buckets of 50 ms: the allowed QPS is held over 100 ms.
const BUCKET: BucketLength = match NonZeroU64::new(50_000_000) {
    Some(length) => BucketLength::new(length),
    None => BucketLength::HALF_SECOND,
};

/// Windows in a second, times 1000 because the allowed QPS is published in thousandths.
const MILLI_WINDOWS: u64 = 10_000;

/// Most tries against other callers.
const TRIES: u32 = 64;

impl Gate {
    /// Whether a scope admits a request that will hold no permit. Healthy scopes admit all, rejecting
    /// ones none; in overload the allowed QPS is enforced here, since nothing is in flight to hold it against.
    ///
    /// # Errors
    /// The refusal, if the scope's allowed QPS is used up or is nothing.
    pub fn admit_one_shot<C: Clock>(&self, clock: &C, scope: u32) -> Result<(), Refusal> {
        self.admit_one_shot_by(clock, scope, |_now_ns, _limit_milli| None)
    }

    /// The same where callers divide what there is: `part` is asked with the time and the allowed QPS, in thousandths,
    /// whether this one may have a part; `None` where it may have all that there is.
    ///
    /// # Errors
    /// The refusal, if what the caller may have is used up or is nothing.
    pub fn admit_one_shot_by<C: Clock>(
        &self,
        clock: &C,
        scope: u32,
        part: impl FnOnce(u64, u64) -> Option<bool>,
    ) -> Result<(), Refusal> {
        let admitted = match self.check_one_shot(clock, scope, part) {
            Err(_refusal) if self.board.scope(scope).observe => {
                self.ledger.count_observed(scope);
                Ok(())
            }
            decided => decided,
        };
        admitted.inspect(|()| self.ledger.count_one_shot(scope))
    }

    fn check_one_shot<C: Clock>(
        &self,
        clock: &C,
        scope: u32,
        part: impl FnOnce(u64, u64) -> Option<bool>,
    ) -> Result<(), Refusal> {
        let now_ns = clock.now_ns();
        let (Some(info), Some(word)) = (self.board.scope_info(scope), self.ledger.one_shot(scope))
        else {
            return Ok(());
        };
        if matches!(info.word.state, ScopeState::Reject) {
            return Err(Refusal::scope(Reason::Reject, 0, 0).spread(now_ns));
        }
        if !matches!(info.word.state, ScopeState::Overload) || info.allowed_qps_milli == u64::MAX {
            return Ok(());
        }
        let limit = info.allowed_qps_milli.div_ceil(MILLI_WINDOWS);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let refused = || Err(Refusal::scope(Reason::AllowedQps, limit, limit).spread(now_ns));
        match part(now_ns, info.allowed_qps_milli) {
            Some(true) => return Ok(()),
            Some(false) => return refused(),
            None => {}
        }
        // Relaxed: the word carries all there is.
        let mut seen = word.load(Ordering::Relaxed);
        for _try in 0..TRIES {
            let window = Window::at(seen, BUCKET.epoch(now_ns));
            let Some(next) = window.try_add(1, limit) else {
                break;
            };
            match word.exchange_weak(seen, next.word(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_before) => return Ok(()),
                Err(found) => seen = found,
            }
        }
        refused()
    }
}
