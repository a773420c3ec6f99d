//! What counts as a bad call, and how many of them are too many.

use crate::breaker::tally::{BreakerTally, COUNT_MAX};
use crate::number::whole_u32;
use crate::quirks::Quirks;

/// When a breaker opens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreakerTrip {
    /// Share of slow calls over `ratio`.
    SlowRatio {
        /// A call that took longer is slow.
        max_rt_ns: u64,
        /// 0 to 1.
        ratio: f64,
    },
    /// Share of failed calls over this, 0 to 1.
    ErrorRatio(f64),
    /// Failed calls over this.
    ErrorCount(f64),
}

impl BreakerTrip {
    /// Whether a completed call counts as bad. Slowness ignores errors, errors ignore time.
    #[inline]
    pub const fn is_bad(self, rt_ns: u64, is_error: bool) -> bool {
        match self {
            Self::SlowRatio { max_rt_ns, .. } => rt_ns > max_rt_ns,
            Self::ErrorRatio(_) | Self::ErrorCount(_) => is_error,
        }
    }

    /// The tally with one completion more. A number of bad calls must not shrink, however many good ones there are
    /// in the interval; a share may.
    #[inline]
    pub const fn count(self, tally: BreakerTally, is_bad: bool) -> BreakerTally {
        match self {
            Self::ErrorCount(_) => tally.add_or_stop(is_bad),
            Self::SlowRatio { .. } | Self::ErrorRatio(_) => tally.add(is_bad),
        }
    }

    /// A value that was kept in memory that others can write, cut to what can be measured.
    pub fn possible(self, value: f64) -> f64 {
        let most = match self {
            Self::SlowRatio { .. } | Self::ErrorRatio(_) => 1.0,
            Self::ErrorCount(_) => f64::from(COUNT_MAX),
        };
        // What is no number is 0, too.
        if value > 0.0 { value.min(most) } else { 0.0 }
    }

    /// A measured value and the threshold as whole numbers: shares in 1/1000, counts as they are.
    pub fn shown(self, value: f64) -> (u32, u32) {
        let whole = |value: f64| whole_u32(value + 0.5);
        match self {
            Self::SlowRatio { ratio, .. } | Self::ErrorRatio(ratio) => {
                (whole(value * 1_000.0), whole(ratio * 1_000.0))
            }
            Self::ErrorCount(count) => (whole(value), whole(count)),
        }
    }

    /// The measured value, if it is over the threshold.
    #[inline]
    pub(super) fn over(self, tally: BreakerTally, quirks: Quirks) -> Option<f64> {
        let (value, threshold, trips_at_one) = match self {
            Self::SlowRatio { ratio, .. } => (tally.bad_ratio(), ratio, true),
            Self::ErrorRatio(ratio) => (tally.bad_ratio(), ratio, !quirks.wanted()),
            Self::ErrorCount(count) => (f64::from(tally.bad()), count, false),
        };
        let all_bad = trips_at_one && threshold >= 1.0 && value >= threshold;
        (value > threshold || all_bad).then_some(value)
    }
}
