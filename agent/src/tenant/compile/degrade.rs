//! Circuit breakers.

use std::num::NonZeroU64;

use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip as Opens;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::RuleKind;

use super::nanos;
use crate::rule::Degrade;
use crate::rule::degrade::TripCondition;

pub(super) fn kind(degrade: &Degrade, quirks: Quirks) -> RuleKind {
    let breaker = Breaker {
        trip: match degrade.trip {
            TripCondition::SlowRatio { max_rt, threshold } => Opens::SlowRatio {
                max_rt_ns: nanos(max_rt),
                ratio: threshold.get(),
            },
            TripCondition::ErrorRatio { threshold } => Opens::ErrorRatio(threshold.get()),
            TripCondition::ErrorCount { threshold } => Opens::ErrorCount(threshold.get()),
        },
        min_requests: degrade.min_requests,
        recovery_ns: nanos(degrade.recovery_timeout),
        lease_ns: nanos(degrade.probe_lease),
        quirks,
    };
    RuleKind::Degrade {
        breaker,
        interval_ns: NonZeroU64::new(nanos(degrade.stat_interval)).unwrap_or(NonZeroU64::MIN),
    }
}
