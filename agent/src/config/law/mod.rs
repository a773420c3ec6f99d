//! The options of the law.

mod idle;
mod numbers;

use std::time::Duration;

use tidegate_limits::law::HISTORY_TICKS;

pub use numbers::settings_of;

use crate::schema::effect::Effects as _;
use crate::schema::kind::{DurationRange, Flag, Number, OneOf, TableOf, Whole, words};
use crate::schema::settings::{Section, settings};

words! {
    /// How a scope's limits are found.
    pub enum LawKind {
        /// The in-flight limit, wide to enter and tight inside.
        Adaptive = "adaptive",
        /// Sentinel's plain check of `cpu.enter` and `load.enter_per_cpu`, on or off each second.
        Sentinel = "sentinel",
    }
}

words! {
    /// Whether the law acts.
    pub enum LawMode {
        /// It refuses what is over its limits.
        Enforce = "enforce",
        /// It judges and tells, and refuses nothing.
        Observe = "observe",
    }
}

/// A number of requests that a limit may be.
const REQUESTS: Number = Number {
    min: 1.0,
    max: 1_000_000.0,
};

/// A rate, requests per second.
const QPS: Number = Number {
    min: 0.0,
    max: 1_000_000.0,
};

settings! {
    /// The law. C is the capacity of a scope in requests per second, RT0 its response time at rest.
    pub struct LawOptions {
        /// How limits are found. Sentinel's check has one mark and no hysteresis: of `[cpu]`, `[load]`
        /// and `[law]` it takes the two `enter` marks alone, each where it is enabled. The load mark is the
        /// host's; a group has none.
        kind: LawKind = LawKind::Adaptive, OneOf::<LawKind>::ANY;
        /// Whether it acts. One that observes judges as ever, refuses nothing, and counts what found its limits
        /// reached (`tidegate_scope_observed_total`): more than it would refuse, since nothing keeps the queue short.
        mode: LawMode = LawMode::Enforce, OneOf::<LawMode>::ANY;
        /// When overload begins: in flight over max(C × (RT0 + delay), least).
        entry: EntryOptions = EntryOptions::default(), TableOf::<EntryOptions>::OF;
        /// How much is admitted in overload: C × RT0 + max(C × delay, slack) + what feedback adds.
        tight: TightOptions = TightOptions::default(), TableOf::<TightOptions>::OF;
        /// The declared guess before there is history.
        cold: ColdOptions = ColdOptions::default(), TableOf::<ColdOptions>::OF;
        /// How C and RT0 are estimated.
        estimate: EstimateOptions = EstimateOptions::default(), TableOf::<EstimateOptions>::OF;
        /// What says that the CPU is short, and what names the cause.
        evidence: EvidenceOptions = EvidenceOptions::default(), TableOf::<EvidenceOptions>::OF;
        /// When overload ends.
        release: ReleaseOptions = ReleaseOptions::default(), TableOf::<ReleaseOptions>::OF;
        /// The rate for callers that hold no permit: C + (limit - in flight) / horizon.
        rate: RateOptions = RateOptions::default(), TableOf::<RateOptions>::OF;
        /// When shedding is said to have no effect.
        effect: EffectOptions = EffectOptions::default(), TableOf::<EffectOptions>::OF;
        /// A resource whose requests wait for something else and fill the scope while the CPU is idle is held to a
        /// part of what it had in flight, so that the others pass.
        bulkhead: BulkheadOptions = BulkheadOptions::default(), TableOf::<BulkheadOptions>::OF;
    }
    check check_law;
}

fn check_law(law: &LawOptions, section: &mut Section<'_, '_>) {
    law.warn(section);
    let hint = "the limit to enter overload is wider than the limit inside";
    if law.entry.delay < law.tight.delay {
        let allowed = "`entry.delay` at least `tight.delay`";
        section.refuse(&["entry.delay", "tight.delay"], allowed, hint);
    }
    if law.cold.entry_per_cpu < law.cold.tight_per_cpu {
        let allowed = "`cold.entry_per_cpu` at least `cold.tight_per_cpu`";
        section.refuse(&["cold.entry_per_cpu", "cold.tight_per_cpu"], allowed, hint);
    }
    if law.tight.shrink_over_ratio < law.tight.grow_under_ratio {
        let allowed = "`tight.shrink_over_ratio` at least `tight.grow_under_ratio`";
        let keys = ["tight.shrink_over_ratio", "tight.grow_under_ratio"];
        section.refuse(&keys, allowed, "a tick cannot both add and take away");
    }
}

settings! {
    /// When overload begins.
    pub struct EntryOptions {
        /// Queueing time that is tolerated.
        delay: Duration = Duration::from_millis(200), DurationRange::ms(1, 60_000);
        /// Lower bound of the limit, requests in flight.
        least_requests: f64 = 32.0, REQUESTS;
        /// Offered rate under which the law does not act.
        least_qps: f64 = 5.0, QPS;
    }
}

settings! {
    /// How much is admitted in overload.
    pub struct TightOptions {
        /// Queueing that keeps the CPUs busy.
        delay: Duration = Duration::from_millis(20), DurationRange::ms(1, 10_000);
        /// Requests that keep the CPUs busy however low the rate is.
        slack_requests: f64 = 8.0, REQUESTS;
        /// Share of the healthy C × (RT0 + delay) that the limit is never under.
        healthy_ratio: f64 = 0.5, Number::RATIO;
        /// Lower bound of the limit, requests in flight.
        floor_requests: u32 = 1, Whole { min: 1, max: 1_000_000 };
        /// What a tick that refuses while the CPU is not full adds, as a share of the limit.
        grow_ratio: f64 = 0.1, Number::RATIO;
        /// Mean busy share of the CPUs under which it is added.
        grow_under_ratio: f64 = 0.97, Number::RATIO;
        /// Mean busy share over which a part of it is taken away.
        shrink_over_ratio: f64 = 0.99, Number::RATIO;
        /// Share of it that such a tick leaves.
        shrink_ratio: f64 = 0.98, Number::RATIO;
        /// Share of it that a tick of queueing for the CPU leaves.
        queue_shrink_ratio: f64 = 0.95, Number::RATIO;
        /// The limit may grow to this many entry limits while no task queues for a CPU.
        reach_factor: f64 = 3.0, Number { min: 1.0, max: 1_000.0 };
        /// Weight of the newest tick in the mean busy share.
        busy_weight_ratio: f64 = 0.3, Number { min: 0.001, max: 1.0 };
    }
}

settings! {
    /// The declared guess before there is history.
    pub struct ColdOptions {
        /// Tight limit for each effective CPU, requests in flight.
        tight_per_cpu: f64 = 16.0, REQUESTS;
        /// Entry limit for each effective CPU, requests in flight.
        entry_per_cpu: f64 = 32.0, REQUESTS;
        /// Successes that begin the history.
        successes: f64 = 5.0, REQUESTS;
    }
}

settings! {
    /// How capacity and response time at rest are estimated.
    pub struct EstimateOptions {
        /// Ticks that count while healthy.
        healthy_ticks: usize = HISTORY_TICKS, Whole { min: 1, max: HISTORY_TICKS };
        /// Ticks that count in overload.
        overload_ticks: usize = 10, Whole { min: 1, max: HISTORY_TICKS };
        /// Busy share of the CPUs from which the rate of successes is the capacity itself.
        full_ratio: f64 = 0.95, Number::RATIO;
        /// Busy share under which a tick's response times count for the time at rest.
        healthy_under_ratio: f64 = 0.8, Number::RATIO;
        /// Successes whose mean response time is one candidate for the time at rest.
        bucket_successes: f64 = 10.0, REQUESTS;
        /// Share of a tick in garbage collection from which its response times do not count.
        gc_ratio: f64 = 0.1, Number::RATIO;
    }
}

settings! {
    /// What says that the CPU is short, and what names the cause.
    pub struct EvidenceOptions {
        /// Ticks in a row that the CPU must be short.
        ticks: u32 = 2, Whole { min: 1, max: 1_000 };
        /// Busy share of the CPUs that is short.
        busy_ratio: f64 = 0.9, Number::RATIO;
        /// Share of the quota's periods that were throttled; counts with the next one.
        throttle_ratio: f64 = 0.25, Number::RATIO;
        /// Share of the time that was throttled.
        throttled_time_ratio: f64 = 0.05, Number::RATIO;
        /// Share of the time in which some task waited for a CPU.
        psi_cpu_ratio: f64 = 0.8, Number::RATIO;
        /// Share of the CPU time that the hypervisor took.
        steal_ratio: f64 = 0.1, Number::RATIO;
        /// Share of a tick in garbage collection.
        gc_ratio: f64 = 0.1, Number::RATIO;
        /// Full collections within 10 s that are still no trouble.
        full_gc: u32 = 2, Whole { min: 0, max: 1_000 };
        /// Share of a JVM's largest heap that is in use even after collections, from which on it is trouble; 1 is never.
        heap_ratio: f64 = 0.95, Number::RATIO;
        /// How far trouble with garbage collection lowers the CPU thresholds.
        gc_shift_ratio: f64 = 0.15, Number::RATIO;
        /// Own share of the busy CPU under which other work is the cause.
        own_ratio: f64 = 0.5, Number::RATIO;
    }
}

settings! {
    /// When overload ends: demand, not CPU alone, must have fallen.
    pub struct ReleaseOptions {
        /// Mean demand, as a share of the capacity, under which a tick is healthy.
        demand_under_ratio: f64 = 0.9, Number { min: 0.0, max: 10.0 };
        /// Weight of the newest tick in the mean demand.
        weight_ratio: f64 = 0.2, Number { min: 0.001, max: 1.0 };
        /// Demand of one tick is read as at most this.
        most_ratio: f64 = 1.2, Number { min: 1.0, max: 10.0 };
    }
}

settings! {
    /// The rate for callers that hold no permit.
    pub struct RateOptions {
        /// Time in which the rate brings the requests in flight to the limit.
        horizon: Duration = Duration::from_millis(200), DurationRange::ms(10, 60_000);
        /// Share of the capacity that the rate is never under.
        least_ratio: f64 = 0.1, Number::RATIO;
        /// The rate is never under this.
        floor_qps: f64 = 1.0, QPS;
    }
}

settings! {
    /// When shedding is said to have no effect.
    pub struct EffectOptions {
        /// How long pressure must stay while little is admitted.
        period: Duration = Duration::from_secs(5), DurationRange::ms(100, 3_600_000);
        /// Percent of the rate before overload under which little is admitted.
        little_percent: u32 = 50, Whole { min: 0, max: 100 };
        /// How long the floor stays before shedding is tried again.
        rest: Duration = Duration::from_secs(30), DurationRange::ms(0, 3_600_000);
    }
}

settings! {
    /// The automatic bulkhead.
    pub struct BulkheadOptions {
        /// Whether resources are held. One with a concurrency rule of its own never is.
        enabled: bool = true, Flag;
        /// Share that is left of what the resource keeps busy by waiting, or had in flight when the others were last well.
        share_ratio: f64 = 0.5, Number::RATIO;
        /// How long requests must pile up in the scope while its CPU is not short.
        after: Duration = Duration::from_millis(500), DurationRange::ms(100, 600_000);
    }
    check check_bulkhead;
}

fn check_bulkhead(bulkhead: &BulkheadOptions, section: &mut Section<'_, '_>) {
    bulkhead.warn(section);
}
