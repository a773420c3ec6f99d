//! The numbers of the adaptive law.

use std::time::Duration;

use super::schema::kind::{Number, OneOf, Span, Whole, words};
use super::schema::settings::{Section, settings};

words! {
    /// How a scope's limits are found.
    pub enum LawKind {
        /// The in-flight limit, wide to enter and tight inside.
        Adaptive = "adaptive",
        /// Sentinel's plain check: over a mark, refuse.
        Sentinel = "sentinel",
    }
}

settings! {
    /// The adaptive law. `c` stands for the effective CPUs of the scope, `C` for its capacity rate.
    pub struct Law {
        /// How limits are found.
        kind: LawKind = LawKind::Adaptive, OneOf::<LawKind>::ANY;
        /// Share of the CPUs in use that is evidence of overload.
        cpu_short_ratio: f64 = 0.90, Number::RATIO;
        /// Queueing that is accepted in overload: C × this many tasks may wait for a CPU.
        queue_time: Duration = Duration::from_millis(20), Span::ms(1, 10_000);
        /// Waiting tasks that are accepted at any rate.
        queue_min: u32 = 8, Whole { min: 1, max: 100_000 };
        /// Queueing that is accepted before overload: the entry limit is C × (base time + this).
        entry_queue_time: Duration = Duration::from_millis(200), Span::ms(1, 60_000);
        /// Least entry limit, requests in flight.
        entry_min: u32 = 32, Whole { min: 1, max: 1_000_000 };
        /// In flight over this many entry limits is overload without further evidence.
        entry_far_factor: f64 = 3.0, Number { min: 1.0, max: 1_000.0 };
        /// Share of the CPUs in use below which response times count for the base time.
        base_cpu_ratio: f64 = 0.80, Number::RATIO;
        /// History of the base time.
        base_window: Duration = Duration::from_secs(10), Span::ms(100, 600_000);
        /// History of the capacity rate while healthy.
        capacity_window: Duration = Duration::from_secs(10), Span::ms(100, 600_000);
        /// History of the capacity rate in overload.
        overload_capacity_window: Duration = Duration::from_secs(1), Span::ms(100, 60_000);
        /// Share of the CPUs in use from which the rate of successes is the capacity as it is.
        cpu_full_ratio: f64 = 0.95, Number::RATIO;
        /// Share of the CPUs in use below which refusals raise the tight limit.
        slack_ratio: f64 = 0.97, Number::RATIO;
        /// How much they raise it in a tick, as a share of the limit.
        slack_growth_ratio: f64 = 0.10, Number::RATIO;
        /// Share of the CPUs in use over which the raise is taken back.
        saturated_ratio: f64 = 0.99, Number::RATIO;
        /// Share of the raise that stays after such a tick.
        saturated_keep_ratio: f64 = 0.98, Number::RATIO;
        /// Share of the raise that stays after a tick with too many waiting tasks.
        queue_keep_ratio: f64 = 0.95, Number::RATIO;
        /// Demand, as a share of the CPUs, below which a sample in overload is healthy.
        release_demand_ratio: f64 = 0.90, Number::RATIO;
        /// Weight of the newest tick in the average of the demand.
        demand_weight_ratio: f64 = 0.20, Number { min: 0.001, max: 1.0 };
        /// Successes after which the law knows a scope.
        cold_successes: u32 = 5, Whole { min: 1, max: 1_000_000 };
        /// Tight limit of a cold scope for each CPU, requests in flight.
        cold_limit_per_cpu: u32 = 16, Whole { min: 1, max: 100_000 };
        /// Entry limit of a cold scope for each CPU, requests in flight.
        cold_entry_per_cpu: u32 = 32, Whole { min: 1, max: 100_000 };
        /// Time in which the allowed rate fills the room below the limit.
        allowed_horizon: Duration = Duration::from_millis(200), Span::ms(10, 60_000);
        /// Burst of callers that hold no permit, as time at the allowed rate.
        allowed_burst: Duration = Duration::from_millis(100), Span::ms(10, 10_000);
    }
    check check_law;
}

fn check_law(law: &Law, section: &mut Section<'_, '_>) {
    if law.entry_queue_time < law.queue_time {
        section.refuse(
            &["entry_queue_time", "queue_time"],
            "`entry_queue_time` at least `queue_time`",
            "the limit to enter overload is wider than the limit inside",
        );
    }
    if law.cold_entry_per_cpu < law.cold_limit_per_cpu {
        section.refuse(
            &["cold_entry_per_cpu", "cold_limit_per_cpu"],
            "`cold_entry_per_cpu` at least `cold_limit_per_cpu`",
            "the limit to enter overload is wider than the limit inside",
        );
    }
}
