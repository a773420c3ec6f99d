//! Flow and isolation rules.

use std::time::Duration;

use tidegate_abi::decision::Mode;

use super::refuse_unless;
use crate::rule::Amount;
use crate::rule::effect::{Effects, OptionEffect};
use crate::rule::flow::{BehaviorWord, COLD_FACTOR_MAX, FlowOptions, GradeWord, StrategyWord};
use crate::rule::sentinel::Foreign;
use crate::rule::sentinel::code::{Code, INT_MAX, Id, Threshold, UpTo, id, millis, seconds};
use crate::schema::kind::{AnyText, Maybe, NameText, OneOf, RequiredOption, Whole};
use crate::schema::settings::{Section, settings};

const RELATIONS: Code<StrategyWord> = Code {
    codes: &[(0, StrategyWord::Direct), (1, StrategyWord::Relate)],
    other: None,
};

settings! {
    /// The fields of a flow rule.
    pub(super) struct GoFlow {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-create\"");
        /// Direct, warm up, or by the memory in use.
        calculation as "tokenCalculateStrategy": i64 = 0, Whole { min: 0, max: 2 };
        /// Reject or let wait.
        control_behavior as "controlBehavior": i64 = 0, Whole { min: 0, max: 1 };
        /// The limit in one interval.
        threshold: Amount = Amount::ZERO, Threshold;
        /// Where it is counted.
        relation as "relationStrategy": StrategyWord = StrategyWord::Direct, RELATIONS;
        /// The other resource.
        ref_resource as "refResource": String = String::new(), AnyText;
        /// Longest wait.
        max_queueing_time_ms as "maxQueueingTimeMs": i64 = 0, UpTo(INT_MAX);
        /// Seconds of the rise.
        warm_up_period_sec as "warmUpPeriodSec": i64 = 0, UpTo(86_400);
        /// The limit of a cold resource is the threshold by this; up to 1 it is 3.
        cold_factor as "warmUpColdFactor": u32 = 0, Whole { min: 0, max: COLD_FACTOR_MAX };
        /// Length of the interval; 0 is a second.
        interval_ms as "statIntervalInMs": i64 = 0, Whole { min: 0, max: 86_400_000 };
        /// Of the calculation by memory.
        low_mem_usage as "lowMemUsageThreshold": i64 = 0, UpTo(i64::MAX);
        /// Of the calculation by memory.
        high_mem_usage as "highMemUsageThreshold": i64 = 0, UpTo(i64::MAX);
        /// Of the calculation by memory.
        mem_low_water as "memLowWaterMarkBytes": i64 = 0, UpTo(i64::MAX);
        /// Of the calculation by memory.
        mem_high_water as "memHighWaterMarkBytes": i64 = 0, UpTo(i64::MAX);
    }
}

impl Effects for GoFlow {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for GoFlow {
    type Ours = FlowOptions;
    const NAMES: &'static [(&'static str, &'static str)] = &[
        ("count", "threshold"),
        ("reference", "refResource"),
        ("behavior", "controlBehavior"),
        ("warm_up_period", "warmUpPeriodSec"),
        ("cold_factor", "warmUpColdFactor"),
        ("max_queueing_time", "maxQueueingTimeMs"),
        ("window", "statIntervalInMs"),
        ("strategy", "relationStrategy"),
    ];
    fn ours(&self, section: &mut Section<'_, '_>) -> FlowOptions {
        self.refuse_others(section);
        let interval_ms = if self.interval_ms == 0 {
            1_000
        } else {
            self.interval_ms
        };
        let rejects = self.calculation == 0 && self.control_behavior == 0;
        // Our own rules of the other behaviors count passes a second.
        let (count, window) = if rejects {
            (self.threshold, millis(interval_ms))
        } else {
            (
                per_second(self.threshold, millis(interval_ms)),
                Duration::from_secs(1),
            )
        };
        let reference = (self.relation == StrategyWord::Relate).then(|| self.ref_resource.clone());
        FlowOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            count,
            window,
            strategy: self.relation,
            reference: reference.filter(|name| !name.trim().is_empty()),
            behavior: match (self.calculation, self.control_behavior) {
                (0, 0) => BehaviorWord::Reject,
                (0, _) => BehaviorWord::Pace,
                (_, 0) => BehaviorWord::WarmUp,
                _ => BehaviorWord::WarmUpPace,
            },
            warm_up_period: seconds(self.warm_up_period_sec),
            cold_factor: self.cold_factor(),
            max_queueing_time: millis(self.max_queueing_time_ms),
            ..FlowOptions::default()
        }
    }
}

impl GoFlow {
    fn cold_factor(&self) -> u32 {
        let given = Some(self.cold_factor).filter(|factor| *factor > 1);
        given.unwrap_or(FlowOptions::default().cold_factor)
    }

    fn refuse_others(&self, section: &mut Section<'_, '_>) {
        let by_memory = (
            "0 (direct) | 1 (warm up)",
            "no rule here goes by the memory in use",
        );
        refuse_unless(
            self.calculation < 2,
            "tokenCalculateStrategy",
            by_memory,
            section,
        );
    }
}

fn per_second(threshold: Amount, interval: Duration) -> Amount {
    Amount::new(threshold.get() / interval.as_secs_f64()).unwrap_or(threshold)
}

settings! {
    /// The fields of an isolation rule.
    pub(super) struct GoIsolation {
        /// Only echoed.
        id: Option<String> = None, Maybe(Id, "17");
        /// Ours: enforce, observe or off.
        mode: Mode = Mode::Enforce, OneOf::<Mode>::ANY;
        /// Name of the resource.
        resource: String = String::new(), RequiredOption(NameText, "\"order-create\"");
        /// What is counted: requests in flight.
        metric_type as "metricType": i64 = 0, Whole { min: 0, max: 0 };
        /// Most of them.
        threshold: Amount = Amount::ZERO, Threshold;
    }
}

impl Effects for GoIsolation {
    const EFFECTS: &'static [OptionEffect<Self>] = &[];
}

impl Foreign for GoIsolation {
    type Ours = FlowOptions;
    const NAMES: &'static [(&'static str, &'static str)] =
        &[("count", "threshold"), ("grade", "metricType")];
    fn ours(&self, _section: &mut Section<'_, '_>) -> FlowOptions {
        FlowOptions {
            id: id(self.id.as_ref()),
            mode: self.mode,
            resource: self.resource.clone(),
            grade: GradeWord::Concurrency,
            count: self.threshold,
            ..FlowOptions::default()
        }
    }
}
