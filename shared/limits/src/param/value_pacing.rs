//! Even spacing of the requests of one value. State: the last release in whole ms.
//!
//! `cost = round(1000 · n · duration / limit)` ms. The first request passes; another passes when its
//! turn `last + cost` has come, or waits for it. Sentinel refuses a wait that is equal to the longest
//! wait; the flow rule's pacing admits it, and so does this one without quirks.

use crate::number::{MS, NS_PER_MS, quotient, rounded};
use crate::param::STATE_MAX;
use crate::quirks::Quirks;
use crate::verdict::Verdict;

/// A pacing rule's numbers for one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuePacing {
    /// Requests per duration; 0 refuses.
    pub limit: u32,
    /// Seconds.
    pub duration_s: u32,
    /// The longest wait, ms.
    pub max_wait_ms: u64,
    /// With quirks the longest wait itself is refused.
    pub quirks: Quirks,
}

impl ValuePacing {
    /// Asks for `n` at `now_ns`; gives the new state, `None` where nothing changes.
    #[inline]
    pub fn step(&self, state: Option<u64>, now_ns: u64, n: u32) -> (Verdict, Option<u64>) {
        if self.limit == 0 {
            return (Verdict::NEVER, None);
        }
        let now = quotient(now_ns, MS);
        let Some(last) = state else {
            return (Verdict::ADMIT, Some(now.min(STATE_MAX)));
        };
        let turn = last.saturating_add(self.cost_ms(n));
        let wait = turn.saturating_sub(now);
        if wait > self.longest_ms() && wait > 0 {
            let over = wait.saturating_sub(self.longest_ms());
            let retry_after_ns = Some(over.saturating_mul(NS_PER_MS));
            return (Verdict::Refuse { retry_after_ns }, None);
        }
        let wait_ns = wait.saturating_mul(NS_PER_MS);
        let released = turn.max(now).min(STATE_MAX);
        (Verdict::Admit { wait_ns }, Some(released))
    }

    fn longest_ms(&self) -> u64 {
        self.max_wait_ms
            .saturating_sub(u64::from(self.quirks.wanted()))
    }

    /// ms between the release before and this one.
    fn cost_ms(&self, n: u32) -> u64 {
        let requests = 1_000.0 * f64::from(n) * f64::from(self.duration_s);
        rounded(requests / f64::from(self.limit))
    }
}
