//! Everything that can be set about the law. The defaults are the figures that held in simulation
//! and in a real loop.

pub use super::sample::CpuUse;
pub use super::tick_length::TickLength;
use crate::{bulkhead, healthy_run, threshold};

/// Settings of the law of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LawSettings {
    /// Whether the law judges, or Sentinel's plain check.
    pub kind: LawChoice,
    /// Whether decisions act on what it says.
    pub enforcement: Enforcement,
    /// Length of a tick. Whatever is counted or weighted by ticks below is by ticks of this length.
    pub tick: TickLength,
    /// When overload begins.
    pub entry: EntrySettings,
    /// How much is admitted in overload.
    pub tight: TightSettings,
    /// The declared guess before there is history.
    pub cold: ColdSettings,
    /// How capacity and base time are estimated.
    pub estimate: EstimateSettings,
    /// What says that the CPU is short.
    pub evidence: EvidenceSettings,
    /// When overload ends.
    pub release: ReleaseSettings,
    /// The rate for callers that hold no permit.
    pub rate: RateSettings,
    /// When shedding is said to have no effect.
    pub effect: EffectSettings,
    /// Plain thresholds of the operator.
    pub marks: OperatorThresholds,
    /// What too many live threads do; `None` is nothing.
    pub threads: Option<ThreadsSettings>,
    /// How resources are held that fill the scope while its CPU is idle; `None` is never. The agent does that beside
    /// the law.
    pub bulkhead: Option<bulkhead::BulkheadSettings>,
}

/// Who judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LawChoice {
    /// The adaptive law.
    #[default]
    Adaptive,
    /// Sentinel's plain check of [`OperatorThresholds`].
    Sentinel,
}

/// Whether decisions act on what the law says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enforcement {
    /// They refuse what is over the limits.
    #[default]
    Enforce,
    /// They refuse nothing, and count what they would have refused. The law judges as ever.
    Observe,
}

/// When overload begins: the wide limit `max(C·(RT0 + delay), least)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntrySettings {
    /// Queueing delay that is still nobody's trouble, seconds (E).
    pub delay_s: f64,
    /// The limit is never under this, requests (`N_E`).
    pub least: f64,
    /// Offered rate under which the law does not act, requests per second.
    pub least_qps: f64,
}

impl Default for EntrySettings {
    fn default() -> Self {
        Self {
            delay_s: 0.2,
            least: 32.0,
            least_qps: 5.0,
        }
    }
}

/// How much is admitted in overload: the tight limit `C·RT0 + max(C·delay, slack) + extra`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TightSettings {
    /// Queueing delay that keeps the CPUs busy, seconds (B).
    pub delay_s: f64,
    /// Requests that keep the CPUs busy however low the rate is; at most 4 for each CPU count.
    pub slack: f64,
    /// Share of the healthy capacity's `C·(RT0 + delay)` that the limit is never under.
    pub healthy_share: f64,
    /// The limit is never under this, requests: the operator's safety floor.
    pub floor: u32,
    /// Growth of `extra` in a tick that refused while the CPU was not full, share of the limit.
    pub grow: f64,
    /// Mean busy share under which `extra` grows.
    pub grow_under: f64,
    /// Mean busy share over which `extra` shrinks.
    pub shrink_over: f64,
    /// What a tick of full CPU leaves of `extra`.
    pub shrink: f64,
    /// What a tick of queueing for the CPU leaves of `extra`.
    pub queue_shrink: f64,
    /// The limit may grow to this many times the entry limit while no task queues for a CPU: those
    /// the service waits for have become slower.
    pub reach: f64,
    /// Weight of the newest tick in the mean busy share.
    pub busy_weight: f64,
}

impl Default for TightSettings {
    fn default() -> Self {
        Self {
            delay_s: 0.02,
            slack: 8.0,
            healthy_share: 0.5,
            floor: 1,
            grow: 0.1,
            grow_under: 0.97,
            shrink_over: 0.99,
            shrink: 0.98,
            queue_shrink: 0.95,
            reach: 3.0,
            busy_weight: 0.3,
        }
    }
}

/// The declared guess of a scope without history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColdSettings {
    /// Tight limit for each effective CPU, requests.
    pub tight_per_cpu: f64,
    /// Entry limit for each effective CPU, requests.
    pub entry_per_cpu: f64,
    /// Successes that begin the history.
    pub successes: f64,
}

impl Default for ColdSettings {
    fn default() -> Self {
        Self {
            tight_per_cpu: 16.0,
            entry_per_cpu: 32.0,
            successes: 5.0,
        }
    }
}

/// How capacity `C` and base time `RT0` are estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EstimateSettings {
    /// Ticks that count while healthy; at most [`super::HISTORY_TICKS`].
    pub healthy_ticks: usize,
    /// Ticks that count in overload.
    pub overload_ticks: usize,
    /// Busy share from which the rate of successes is the capacity itself.
    pub full: f64,
    /// Busy share under which a tick's response times may become the base time.
    pub healthy_under: f64,
    /// Successes whose mean response time is one candidate for the base time. One lucky reply
    /// among so many moves the mean by little.
    pub bucket: f64,
    /// Share of the tick spent in garbage collection from which its response times do not count.
    pub gc_share: f64,
}

impl Default for EstimateSettings {
    fn default() -> Self {
        Self {
            healthy_ticks: super::HISTORY_TICKS,
            overload_ticks: 10,
            full: 0.95,
            healthy_under: 0.8,
            bucket: 10.0,
            gc_share: 0.1,
        }
    }
}

/// What says that the CPU is short, and what names the cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvidenceSettings {
    /// Ticks in a row that the CPU must be short. One tick over the mark is common at half load.
    pub ticks: u32,
    /// Busy share of the scope's CPUs.
    pub busy: f64,
    /// Share of the quota's periods that were throttled; counts with `throttled_time`.
    pub throttle: f64,
    /// Share of the time that was throttled.
    pub throttled_time: f64,
    /// Share of the time in which some task waited for a CPU (a slow average of the kernel).
    pub psi_cpu: f64,
    /// Share of the CPU time that the hypervisor took.
    pub steal: f64,
    /// Share of the tick spent in garbage collection.
    pub gc_share: f64,
    /// Full collections within 10 s that are still no trouble.
    pub full_gc: u32,
    /// Share of the heap in use, even after collections, that is trouble.
    pub heap: f64,
    /// How far trouble with garbage collection lowers the CPU marks.
    pub gc_shift: f64,
    /// Own share of the busy CPU under which other work is the cause.
    pub own_share: f64,
}

impl Default for EvidenceSettings {
    fn default() -> Self {
        Self {
            ticks: 2,
            busy: 0.90,
            throttle: 0.25,
            throttled_time: 0.05,
            psi_cpu: 0.8,
            steal: 0.1,
            gc_share: 0.1,
            full_gc: 2,
            heap: 0.95,
            gc_shift: 0.15,
            own_share: 0.5,
        }
    }
}

/// When overload ends: demand, not CPU alone, must have fallen, for shedding itself lowers CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReleaseSettings {
    /// Mean demand, as a share of the capacity, under which a tick is healthy.
    pub demand_under: f64,
    /// Weight of the newest tick in the mean demand.
    pub weight: f64,
    /// Demand of one tick is read as at most this, so that the mean falls quickly.
    pub most: f64,
    /// Healthy ticks in a row that end overload.
    pub healthy: healthy_run::HealthyRunSettings,
    /// Most changes of state in any hour. Past them an overload that has ended stays, with the entry
    /// limit, until the hour has room again.
    pub most_changes_per_hour: u32,
}

impl Default for ReleaseSettings {
    fn default() -> Self {
        Self {
            demand_under: 0.9,
            weight: 0.2,
            most: 1.2,
            healthy: healthy_run::HealthyRunSettings::default(),
            most_changes_per_hour: 12,
        }
    }
}

/// The rate for callers that hold no permit: `C + (L − N) / horizon`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSettings {
    /// Time in which the rate brings in flight to the limit, seconds.
    pub horizon_s: f64,
    /// Share of the capacity that the rate is never under.
    pub least_share: f64,
    /// The rate is never under this, requests per second: the operator's safety floor.
    pub floor_qps: f64,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self {
            horizon_s: 0.2,
            least_share: 0.1,
            floor_qps: 1.0,
        }
    }
}

/// When shedding is said to have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectSettings {
    /// How long pressure must stay while little is admitted, ns.
    pub period_ns: u64,
    /// Percent of the rate before overload under which little is admitted.
    pub little_percent: u32,
    /// How long the floor policy stays before shedding is tried again, ns.
    pub rest_ns: u64,
}

impl Default for EffectSettings {
    fn default() -> Self {
        Self {
            period_ns: 5_000_000_000,
            little_percent: 50,
            rest_ns: 30_000_000_000,
        }
    }
}

/// Too many live threads lower the limit for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadsSettings {
    /// Live threads over which the limit is lowered.
    pub watermark: u32,
    /// Share of the requests then in flight that the limit leaves; never under one for each CPU.
    pub leave_share: f64,
    /// How far the CPU marks are lowered meanwhile.
    pub cpu_shift: f64,
    /// How long the limit holds before it expires by itself, ns.
    pub hold_ns: u64,
}

impl ThreadsSettings {
    /// This watermark, and the default of the rest.
    pub fn over(watermark: u32) -> Self {
        Self {
            watermark,
            leave_share: 0.5,
            cpu_shift: 0.0,
            hold_ns: 30_000_000_000,
        }
    }
}

/// Plain thresholds of the operator, beside the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperatorThresholds {
    /// On the share of the CPUs in use.
    pub cpu: Option<threshold::ThresholdSettings>,
    /// Whose use of the CPUs the mark is on.
    pub cpu_use: CpuUse,
    /// On the load average for each effective CPU; load alone is no overload unless an operator says so.
    pub load: Option<threshold::ThresholdSettings>,
    /// What an active threshold does.
    pub action: ThresholdAction,
}

impl Default for OperatorThresholds {
    fn default() -> Self {
        Self {
            cpu: Some(threshold::ThresholdSettings::cpu()),
            cpu_use: CpuUse::Everybody,
            load: None,
            action: ThresholdAction::Shape,
        }
    }
}

/// What an active threshold does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThresholdAction {
    /// The entry limit is in force: who queues beyond it is refused, nobody else.
    #[default]
    Shape,
    /// All inbound work is refused.
    Reject,
}
