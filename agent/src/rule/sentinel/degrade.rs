//! Degrade rules in Sentinel's form.

use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_limits::breaker::tally::COUNT_MAX;

use super::code::{Code, INT_MAX, Id, Threshold, id, millis, seconds};
use super::{Foreign, no_callers};
use crate::rule::Amount;
use crate::rule::amount::Fraction;
use crate::rule::degrade::{DegradeOptions, REQUESTS, TripWord};
use crate::rule::effect::{Effects, Idle, OptionEffect};
use crate::schema::kind::{AnyText, Maybe, NameText, OneOf, RequiredOption, Whole};
use crate::schema::settings::{Section, settings};

const GRADES: Code<TripWord> = Code {
    codes: &[
        (0, TripWord::SlowRatio),
        (1, TripWord::ErrorRatio),
        (2, TripWord::ErrorCount),
    ],
    other: None,
};

settings! {
    /// The fields of a degrade rule.
    pub(super) struct DegradeFields {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"payment\"");
        /// Not used.
        limit_app as "limitApp": String = String::new(), AnyText;
        /// What makes it trip.
        grade: TripWord = TripWord::SlowRatio, GRADES;
        /// Longest normal time in ms, share or number, after the grade.
        count: Amount = Amount::ZERO, Threshold;
        /// Share of slow requests.
        slow_ratio_threshold as "slowRatioThreshold": Amount = Amount::ONE, Fraction;
        /// Seconds open.
        time_window as "timeWindow": i64 = 0, RequiredOption(Whole { min: 1, max: INT_MAX }, "5");
        /// Completed requests below which it does not trip.
        min_request_amount as "minRequestAmount": i64 = 5, Whole { min: 1, max: INT_MAX };
        /// Length of its interval.
        stat_interval_ms as "statIntervalMs": i64 = 1_000, Whole { min: 1, max: INT_MAX };
    }
}

/// Those that our form has answer there.
impl Effects for DegradeFields {
    const EFFECTS: &'static [OptionEffect<Self>] = &[
        OptionEffect::new("limitApp", |degrade| no_callers(&degrade.limit_app)),
        OptionEffect::new("slowRatioThreshold", |degrade| {
            let counts = degrade.grade == TripWord::SlowRatio;
            Idle::when(!counts, "with grade 0", "this grade counts errors only")
        }),
        OptionEffect::always("timeWindow"),
        OptionEffect::always("statIntervalMs"),
    ];
}

impl Foreign for DegradeFields {
    type Ours = DegradeOptions;
    const NAMES: &'static [(&'static str, &'static str)] =
        &[("threshold", "count"), ("min_requests", "minRequestAmount")];
    fn ours(&self, section: &mut Section<'_, '_>) -> DegradeOptions {
        // Sentinel compares with the count rounded half up.
        let max_rt_ms = (self.count.get() + 0.5).floor();
        DegradeOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            grade: self.grade,
            threshold: match self.grade {
                TripWord::SlowRatio => self.slow_ratio_threshold,
                TripWord::ErrorRatio => self.count,
                TripWord::ErrorCount => self.countable(section),
            },
            max_rt: Duration::try_from_secs_f64(max_rt_ms / 1_000.0).ok(),
            min_requests: self.min_requests(section),
            stat_interval: millis(self.stat_interval_ms),
            recovery_timeout: seconds(self.time_window),
            ..DegradeOptions::default()
        }
    }
}

/// An interval counts to some millions. A breaker that waits for more opens at the last of them.
const FEWER: &str = "an interval counts no further, the breaker opens there";

impl DegradeFields {
    fn min_requests(&self, section: &mut Section<'_, '_>) -> u32 {
        let wanted = u32::try_from(self.min_request_amount).unwrap_or(u32::MAX);
        if wanted > REQUESTS.max {
            section.warn("min_requests", format!("at most {}", REQUESTS.max), FEWER);
        }
        wanted.min(REQUESTS.max)
    }

    fn countable(&self, section: &mut Section<'_, '_>) -> Amount {
        let most = COUNT_MAX.saturating_sub(1);
        if self.count.whole() > most {
            section.warn("threshold", format!("at most {most}"), FEWER);
            return Amount::new(f64::from(most)).unwrap_or(self.count);
        }
        self.count
    }
}
