//! Circuit-breaker rules. They trip at the threshold, ours over it.

use tidegate_abi::decision::Mode;

use super::refuse_unless;
use crate::rule::Amount;
use crate::rule::degrade::{DegradeOptions, TripWord};
use crate::rule::effect::{Effects, OptionEffect};
use crate::rule::sentinel::Foreign;
use crate::rule::sentinel::code::{Code, INT_MAX, Id, Threshold, UpTo, id, millis};
use crate::schema::kind::{Maybe, NameText, OneOf, RequiredOption, Whole};
use crate::schema::settings::{Section, settings};

const STRATEGIES: Code<TripWord> = Code {
    codes: &[
        (0, TripWord::SlowRatio),
        (1, TripWord::ErrorRatio),
        (2, TripWord::ErrorCount),
    ],
    other: None,
};

settings! {
    /// The fields of a circuit-breaker rule.
    pub(super) struct GoBreaker {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"payment\"");
        /// What makes it trip.
        strategy: TripWord = TripWord::SlowRatio, STRATEGIES;
        /// How long it is open.
        retry_timeout_ms as "retryTimeoutMs": i64 = 0, RequiredOption(Whole { min: 1, max: INT_MAX }, "5000");
        /// Completed requests below which it does not trip.
        min_request_amount as "minRequestAmount": i64 = 0, Whole { min: 0, max: 2_097_152 };
        /// Length of its interval; 0 is a second.
        stat_interval_ms as "statIntervalMs": i64 = 0, Whole { min: 0, max: INT_MAX };
        /// Parts of the interval that expire one by one; 0 is one.
        buckets as "statSlidingWindowBucketCount": i64 = 0, UpTo(INT_MAX);
        /// Longest normal time.
        max_allowed_rt_ms as "maxAllowedRtMs": i64 = 0, UpTo(INT_MAX);
        /// Share or number at which it trips.
        threshold: Amount = Amount::ZERO, Threshold;
        /// Good probes that close it; 0 is one.
        probes as "probeNum": i64 = 0, UpTo(INT_MAX);
    }
}

impl Effects for GoBreaker {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for GoBreaker {
    type Ours = DegradeOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("grade", "strategy"),
        ("max_rt", "maxAllowedRtMs"),
        ("min_requests", "minRequestAmount"),
        ("stat_interval", "statIntervalMs"),
        ("recovery_timeout", "retryTimeoutMs"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> DegradeOptions {
        let buckets = (
            "1, or 0 for it",
            "the statistics of an interval begin anew with each here",
        );
        refuse_unless(
            self.buckets <= 1,
            "statSlidingWindowBucketCount",
            buckets,
            section,
        );
        let probes = ("1, or 0 for it", "one good probe closes a breaker here");
        refuse_unless(self.probes <= 1, "probeNum", probes, section);
        let threshold = self.over();
        if threshold.is_none() {
            let hint = "it trips at this share or number, so it would always be open";
            section.refuse(&["threshold"], "a number over 0", hint);
        }
        let interval_ms = if self.stat_interval_ms == 0 {
            1_000
        } else {
            self.stat_interval_ms
        };
        DegradeOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            grade: self.strategy,
            threshold: threshold.unwrap_or_default(),
            max_rt: Some(millis(self.max_allowed_rt_ms)),
            min_requests: u32::try_from(self.min_request_amount)
                .unwrap_or_default()
                .max(1),
            stat_interval: millis(interval_ms),
            recovery_timeout: millis(self.retry_timeout_ms),
            ..DegradeOptions::default()
        }
    }
}

impl GoBreaker {
    /// The threshold over which it trips. A share of 1 trips when it is reached in both.
    fn over(&self) -> Option<Amount> {
        let at = self.threshold.get();
        if at <= 0.0 {
            return None;
        }
        Amount::new(match self.strategy {
            TripWord::ErrorCount => at.ceil() - 1.0,
            TripWord::SlowRatio | TripWord::ErrorRatio if at >= 1.0 => at,
            TripWord::SlowRatio | TripWord::ErrorRatio => at.next_down(),
        })
    }
}
