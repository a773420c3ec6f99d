//! Degrade rules: circuit breakers.

use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_limits::breaker::tally::{COUNT_MAX, REQUESTS_MAX};

use super::amount::{Amount, Count};
use super::effect::{self, Effects, Idle, OptionEffect};
use super::expiry::{Ending, Expires};
use super::{Body, RuleOptions};
use crate::schema::kind::{DurationRange, Maybe, NameText, OneOf, RequiredOption, Whole, words};
use crate::schema::settings::{Section, settings};
use crate::words::{number, percent};

/// A circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Degrade {
    /// The resources it is for. Each has its own breaker.
    pub resource: GuardedResources,
    /// What opens the breaker.
    pub trip: TripCondition,
    /// Completed requests in the interval below which it does not trip; at least 1.
    pub min_requests: u32,
    /// Length of its interval; statistics begin anew with each.
    pub stat_interval: Duration,
    /// How long it refuses before a probe.
    pub recovery_timeout: Duration,
    /// How long a probe may take before the breaker opens again.
    pub probe_lease: Duration,
}

/// The resources a breaker is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GuardedResources {
    /// The one of this name.
    Name(String),
    /// Every one that has no degrade rule of its own (`*`).
    Unguarded,
}

/// What makes a breaker trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TripCondition {
    /// Too large a share of slow requests.
    SlowRatio {
        /// A request that takes longer is slow.
        max_rt: Duration,
        /// The share.
        threshold: Amount,
    },
    /// Too large a share of failed requests.
    ErrorRatio {
        /// The share.
        threshold: Amount,
    },
    /// Too many failed requests.
    ErrorCount {
        /// The number.
        threshold: Amount,
    },
}

impl TripCondition {
    /// The grade in the words of a rule file, and its threshold.
    pub fn told(self) -> (&'static str, f64) {
        let (grade, threshold) = match self {
            Self::SlowRatio { threshold, .. } => ("slow_ratio", threshold),
            Self::ErrorRatio { threshold } => ("error_ratio", threshold),
            Self::ErrorCount { threshold } => ("error_count", threshold),
        };
        (grade, threshold.get())
    }

    /// What made a breaker open, such as `3 errors, threshold 2`.
    pub fn tripped(self, by: f64) -> String {
        tripped(self.told(), by)
    }
}

/// The same from a grade's word and a threshold.
pub fn tripped((grade, threshold): (&str, f64), by: f64) -> String {
    match grade {
        "error_count" => format!("{} errors, threshold {}", number(by), number(threshold)),
        "error_ratio" => format!("{} errors, threshold {}", percent(by), percent(threshold)),
        "slow_ratio" => format!(
            "{} slow calls, threshold {}",
            percent(by),
            percent(threshold)
        ),
        _ => format!("{}, threshold {}", number(by), number(threshold)),
    }
}

impl Degrade {
    pub(super) fn clear_limits(&mut self) {
        match &mut self.trip {
            TripCondition::SlowRatio { max_rt, threshold } => {
                *max_rt = Duration::ZERO;
                *threshold = Amount::ZERO;
            }
            TripCondition::ErrorRatio { threshold } | TripCondition::ErrorCount { threshold } => {
                *threshold = Amount::ZERO;
            }
        }
    }
}

words! {
    /// What makes a breaker trip.
    pub enum TripWord {
        /// A share of slow requests.
        SlowRatio = "slow_ratio",
        /// A share of failed requests.
        ErrorRatio = "error_ratio",
        /// A number of failed requests.
        ErrorCount = "error_count",
    }
}

/// What an interval surely counts to.
pub(super) const REQUESTS: Whole<u32> = Whole {
    min: 1,
    max: REQUESTS_MAX,
};

/// Longest time of a breaker.
const DAY_MS: u64 = 86_400_000;

settings! {
    /// A circuit breaker.
    pub struct DegradeOptions {
        /// Name in refusals, metrics and logs. Not set: file and place.
        id: Option<String> = None, Maybe(NameText, "\"payment-breaker\"");
        /// `enforce` refuses; `observe` counts what it would have refused; `off` does nothing.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// When it ends by itself: after a time in force, or at a time. Not set: never. Reading the same
        /// text again does not begin anew; a restart of the agent does.
        expires: Option<Expires> = None, Maybe(Ending, "\"30s\"");
        /// Name of the resource; * is every one that has no degrade rule of its own.
        resource: String = String::new(), RequiredOption(NameText, "\"payment\"");
        /// What opens the breaker.
        grade: TripWord = TripWord::SlowRatio, RequiredOption(OneOf::<TripWord>::ANY, "\"error_ratio\"");
        /// It opens over this share (`slow_ratio`, `error_ratio`) or number (`error_count`). A
        /// share of 1 opens it when it is reached.
        threshold: Amount = Amount::ONE, RequiredOption(Count, "0.5");
        /// A request that takes longer is slow (`slow_ratio`).
        max_rt: Option<Duration> = None, Maybe(DurationRange::ms(0, DAY_MS), "\"200ms\"");
        /// Completed requests in the interval below which it stays closed.
        min_requests: u32 = 5, REQUESTS;
        /// Length of the interval; statistics begin anew with each.
        stat_interval: Duration = Duration::from_secs(1), DurationRange::ms(1, DAY_MS);
        /// How long it refuses before it lets a probe through.
        recovery_timeout: Duration = Duration::ZERO, RequiredOption(DurationRange::ms(1, DAY_MS), "\"5s\"");
        /// How long a probe may take. Not set: the recovery timeout, at least a second.
        probe_lease: Option<Duration> = None, Maybe(DurationRange::ms(1, DAY_MS), "\"5s\"");
    }
}

impl RuleOptions for DegradeOptions {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
    fn mode(&self) -> Mode {
        self.mode
    }
    fn expires(&self) -> Option<Expires> {
        self.expires
    }
    fn body(&self, section: &mut Section<'_, '_>) -> Option<Body> {
        Some(Body::Degrade(Degrade {
            resource: match self.resource.as_str() {
                "*" => GuardedResources::Unguarded,
                name => GuardedResources::Name(name.to_owned()),
            },
            trip: self.trip(section)?,
            min_requests: self.min_requests,
            stat_interval: self.stat_interval,
            recovery_timeout: self.recovery_timeout,
            probe_lease: self
                .probe_lease
                .unwrap_or_else(|| self.recovery_timeout.max(Duration::from_secs(1))),
        }))
    }
}

impl Effects for DegradeOptions {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::always("id"),
        OptionEffect::new("expires", |rule| effect::ended(rule.expires)),
        OptionEffect::new("mode", |degrade| effect::off(degrade.mode)),
        OptionEffect::new("resource", |degrade| {
            effect::literal(&degrade.resource, false).filter(|_| degrade.resource != "*")
        }),
        OptionEffect::always("grade"),
        OptionEffect::always("threshold"),
        OptionEffect::new("max_rt", |degrade| {
            let counts = degrade.grade == TripWord::SlowRatio;
            Idle::when(
                !counts,
                "with grade slow_ratio",
                "this grade counts errors, not response times",
            )
        }),
        OptionEffect::always("min_requests"),
        OptionEffect::always("stat_interval"),
        OptionEffect::always("recovery_timeout"),
        OptionEffect::always("probe_lease"),
    ];
}

impl DegradeOptions {
    fn trip(&self, section: &mut Section<'_, '_>) -> Option<TripCondition> {
        let threshold = self.threshold;
        let is_share = threshold.get() <= Amount::ONE.get();
        if self.grade != TripWord::ErrorCount && !is_share {
            let hint = "this grade compares shares of the requests";
            section.refuse(&["threshold", "grade"], "a number from 0 to 1", hint);
            return None;
        }
        if self.grade == TripWord::ErrorCount && threshold.whole() >= COUNT_MAX {
            let allowed = format!("at most {}", COUNT_MAX.saturating_sub(1));
            section.refuse(
                &["threshold", "grade"],
                allowed,
                "an interval counts no further",
            );
            return None;
        }
        match (self.grade, self.max_rt) {
            (TripWord::ErrorRatio, _) => Some(TripCondition::ErrorRatio { threshold }),
            (TripWord::ErrorCount, _) => Some(TripCondition::ErrorCount { threshold }),
            (TripWord::SlowRatio, Some(max_rt)) => {
                Some(TripCondition::SlowRatio { max_rt, threshold })
            }
            (TripWord::SlowRatio, None) => {
                if section.is_sound("grade") {
                    let hint = "grade slow_ratio needs the time above which a request is slow";
                    section.refuse(&["max_rt"], "a duration such as \"200ms\"", hint);
                }
                None
            }
        }
    }
}
