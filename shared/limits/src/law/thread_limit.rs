//! The temporary limit of a scope with too many live threads.
//!
//! ```text
//!            threads > watermark
//!   ┌───────┐ ─────────────────► ┌─────────┐  hold_ns   ┌─────────┐
//!   │ ready │                    │ limited │ ─────────► │ expired │
//!   └───────┘ ◄───────────────── └─────────┘            └─────────┘
//!       ▲      never before it expires                       │
//!       └────────────────────────────────────────────────────┘
//!                        threads <= watermark
//! ```
//!
//! It expires whatever the threads do, and does not come back before they were under the watermark:
//! a pool that keeps its threads must not be held at half its work for ever.

use tidegate_abi::decision::{Cause, ScopeState};

use super::sample::Sample;
use super::settings::ThreadsSettings;

/// The limit of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum ThreadLimit {
    /// Threads were under the watermark.
    #[default]
    Ready,
    /// The limit is in force for so long still, ns.
    Limited {
        /// Requests in flight.
        limit: f64,
        /// Time until it expires, ns.
        left_ns: u64,
    },
    /// It has expired; threads have been over the watermark since.
    Expired,
}

impl ThreadLimit {
    /// Takes the sample of a tick and says which limit is in force after it. Threads that are not
    /// measured change nothing but the time.
    pub(super) fn step(
        &mut self,
        sample: &Sample,
        cpus: f64,
        settings: Option<&ThreadsSettings>,
    ) -> Option<f64> {
        *self = settings.map_or(Self::Ready, |settings| self.next(sample, cpus, settings));
        match *self {
            Self::Limited { limit, .. } => Some(limit),
            Self::Ready | Self::Expired => None,
        }
    }

    /// Whether the limit is in force.
    pub(super) const fn is_limited(self) -> bool {
        matches!(self, Self::Limited { .. })
    }

    fn next(self, sample: &Sample, cpus: f64, settings: &ThreadsSettings) -> Self {
        let over = sample.threads.map(|threads| threads > settings.watermark);
        match (self, over) {
            (Self::Ready, Some(true)) => Self::Limited {
                limit: (sample.held() * settings.leave_share).max(cpus),
                left_ns: settings.hold_ns,
            },
            (Self::Limited { limit, left_ns }, _) if left_ns > sample.tick_ns => Self::Limited {
                limit,
                left_ns: left_ns.saturating_sub(sample.tick_ns),
            },
            (Self::Limited { .. }, _) => Self::Expired,
            (Self::Expired, Some(false)) => Self::Ready,
            (unchanged, _) => unchanged,
        }
    }
}

/// State and cause while the limit is in force: threads are the cause where there is no other.
pub(super) fn over(own: (ScopeState, Cause)) -> (ScopeState, Cause) {
    match own.0 {
        ScopeState::Healthy | ScopeState::Cold => (ScopeState::Overload, Cause::Threads),
        ScopeState::Overload | ScopeState::Reject => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn second(threads: Option<u32>, inflight: u32) -> Sample {
        Sample {
            tick_ns: SECOND_NS,
            threads,
            inflight,
            ..Sample::default()
        }
    }

    #[test]
    fn it_halves_what_is_in_flight_and_expires_after_thirty_seconds() {
        let settings = ThreadsSettings::over(150);
        let mut limit = ThreadLimit::default();
        let mut step =
            |threads, inflight| limit.step(&second(threads, inflight), 2.0, Some(&settings));
        assert_eq!(step(Some(150), 40), None, "at the watermark is not over it");
        assert_eq!(step(Some(151), 40), Some(20.0));
        for _second in 1..30 {
            assert_eq!(
                step(Some(400), 20),
                Some(20.0),
                "half once, not again and again"
            );
        }
        assert_eq!(step(Some(400), 20), None, "it expires by itself");
        assert_eq!(step(Some(400), 90), None, "and does not come back");
        assert_eq!(step(Some(100), 90), None);
        assert_eq!(step(Some(200), 90), Some(45.0));
    }

    #[test]
    fn it_leaves_one_request_for_each_cpu() {
        let mut limit = ThreadLimit::default();
        let settings = ThreadsSettings::over(150);
        let sample = second(Some(500), 1);
        assert_eq!(limit.step(&sample, 4.0, Some(&settings)), Some(4.0));
    }

    #[test]
    fn threads_that_are_not_measured_change_nothing() {
        let settings = ThreadsSettings::over(150);
        let mut limit = ThreadLimit::default();
        let mut step = |threads| limit.step(&second(threads, 40), 2.0, Some(&settings));
        assert_eq!(step(None), None);
        assert_eq!(step(Some(151)), Some(20.0));
        assert_eq!(step(None), Some(20.0));
        for _second in 2..=30 {
            step(None);
        }
        assert_eq!(step(None), None);
        assert_eq!(step(Some(151)), None, "nothing said that they fell");
    }

    #[test]
    fn without_a_watermark_there_is_no_limit() {
        let mut limit = ThreadLimit::Limited {
            limit: 1.0,
            left_ns: SECOND_NS,
        };
        assert_eq!(limit.step(&second(Some(1 << 30), 9), 1.0, None), None);
        assert_eq!(limit, ThreadLimit::Ready);
    }
}
