//! The options as the law takes them: times in ns or seconds, shares as they are.

use std::time::Duration;

use tidegate_limits::law::settings as numbers;
use tidegate_limits::threshold;
use tidegate_limits::{bulkhead, healthy_run};

use super::{
    BulkheadOptions, EntryOptions, EstimateOptions, EvidenceOptions, LawKind, LawMode, LawOptions,
    TightOptions,
};
use crate::config::guard::{CpuAction, CpuOptions, HysteresisOptions, LoadOptions, ThreadsOptions};

/// The settings of a scope as its law takes them. Load counts for the host alone, threads
/// for groups alone.
pub fn settings_of(
    tick: Duration,
    (law, cpu, hysteresis): (&LawOptions, &CpuOptions, &HysteresisOptions),
    load: Option<&LoadOptions>,
    threads: Option<&ThreadsOptions>,
) -> numbers::LawSettings {
    numbers::LawSettings {
        kind: match law.kind {
            LawKind::Adaptive => numbers::LawChoice::Adaptive,
            LawKind::Sentinel => numbers::LawChoice::Sentinel,
        },
        tick: numbers::TickLength(nanoseconds(tick)),
        enforcement: match law.mode {
            LawMode::Enforce => numbers::Enforcement::Enforce,
            LawMode::Observe => numbers::Enforcement::Observe,
        },
        entry: law.entry.numbers(),
        tight: law.tight.numbers(),
        cold: numbers::ColdSettings {
            tight_per_cpu: law.cold.tight_per_cpu,
            entry_per_cpu: law.cold.entry_per_cpu,
            successes: law.cold.successes,
        },
        estimate: law.estimate.numbers(),
        evidence: law.evidence.numbers(),
        release: numbers::ReleaseSettings {
            demand_under: law.release.demand_under_ratio,
            weight: law.release.weight_ratio,
            most: law.release.most_ratio,
            healthy: hysteresis.numbers(tick),
            most_changes_per_hour: hysteresis.changes_per_hour_max,
        },
        rate: numbers::RateSettings {
            horizon_s: law.rate.horizon.as_secs_f64(),
            least_share: law.rate.least_ratio,
            floor_qps: law.rate.floor_qps,
        },
        effect: numbers::EffectSettings {
            period_ns: nanoseconds(law.effect.period),
            little_percent: law.effect.little_percent,
            rest_ns: nanoseconds(law.effect.rest),
        },
        marks: numbers::OperatorThresholds {
            // Threads are a matter of groups: who has them is no host.
            cpu_use: match threads {
                Some(_group) => numbers::CpuUse::Own,
                None => numbers::CpuUse::Everybody,
            },
            ..marks(tick, cpu, load, hysteresis)
        },
        threads: threads.and_then(ThreadsOptions::numbers),
        bulkhead: law.bulkhead.numbers(law.kind),
    }
}

fn marks(
    tick: Duration,
    cpu: &CpuOptions,
    load: Option<&LoadOptions>,
    hysteresis: &HysteresisOptions,
) -> numbers::OperatorThresholds {
    let mark = |enter: f64, leave: f64, sustained: Duration| threshold::ThresholdSettings {
        enter,
        leave,
        sustain_ns: nanoseconds(sustained),
        hold_ns: nanoseconds(hysteresis.minimum_hold),
        blind_ns: nanoseconds(hysteresis.blind_time),
        most_changes_per_hour: hysteresis.changes_per_hour_max,
        healthy: hysteresis.numbers(tick),
    };
    let load = load.filter(|load| load.enabled);
    numbers::OperatorThresholds {
        cpu: cpu
            .enabled
            .then(|| mark(cpu.enter, cpu.leave, cpu.sustained)),
        load: load.map(|load| mark(load.enter_per_cpu, load.leave_per_cpu, Duration::ZERO)),
        action: match cpu.action {
            CpuAction::Shape => numbers::ThresholdAction::Shape,
            CpuAction::Reject => numbers::ThresholdAction::Reject,
        },
        ..numbers::OperatorThresholds::default()
    }
}

impl ThreadsOptions {
    fn numbers(&self) -> Option<numbers::ThreadsSettings> {
        Some(numbers::ThreadsSettings {
            watermark: self.watermark?,
            leave_share: self.leave_ratio,
            cpu_shift: self.cpu_shift_ratio,
            hold_ns: nanoseconds(self.hold),
        })
    }
}

impl HysteresisOptions {
    fn numbers(&self, tick: Duration) -> healthy_run::HealthyRunSettings {
        let time = self.healthy_for.unwrap_or_default();
        let most = self.healthy_for_max.unwrap_or(time.saturating_mul(4));
        healthy_run::HealthyRunSettings {
            tick_ns: nanoseconds(tick),
            samples: self.healthy_samples,
            most_samples: self.healthy_samples_max,
            for_ns: nanoseconds(time),
            most_ns: nanoseconds(most),
            reentry_ns: nanoseconds(self.reentry_window),
        }
    }
}

impl BulkheadOptions {
    /// Sentinel's check knows no overload without a mark.
    fn numbers(&self, kind: LawKind) -> Option<bulkhead::BulkheadSettings> {
        (self.enabled && kind == LawKind::Adaptive).then(|| bulkhead::BulkheadSettings {
            share: self.share_ratio,
            after_ns: nanoseconds(self.after),
        })
    }
}

impl EntryOptions {
    fn numbers(&self) -> numbers::EntrySettings {
        numbers::EntrySettings {
            delay_s: self.delay.as_secs_f64(),
            least: self.least_requests,
            least_qps: self.least_qps,
        }
    }
}

impl TightOptions {
    fn numbers(&self) -> numbers::TightSettings {
        numbers::TightSettings {
            delay_s: self.delay.as_secs_f64(),
            slack: self.slack_requests,
            healthy_share: self.healthy_ratio,
            floor: self.floor_requests,
            grow: self.grow_ratio,
            grow_under: self.grow_under_ratio,
            shrink_over: self.shrink_over_ratio,
            shrink: self.shrink_ratio,
            queue_shrink: self.queue_shrink_ratio,
            reach: self.reach_factor,
            busy_weight: self.busy_weight_ratio,
        }
    }
}

impl EstimateOptions {
    fn numbers(&self) -> numbers::EstimateSettings {
        numbers::EstimateSettings {
            healthy_ticks: self.healthy_ticks,
            overload_ticks: self.overload_ticks,
            full: self.full_ratio,
            healthy_under: self.healthy_under_ratio,
            bucket: self.bucket_successes,
            gc_share: self.gc_ratio,
        }
    }
}

impl EvidenceOptions {
    fn numbers(&self) -> numbers::EvidenceSettings {
        numbers::EvidenceSettings {
            ticks: self.ticks,
            busy: self.busy_ratio,
            throttle: self.throttle_ratio,
            throttled_time: self.throttled_time_ratio,
            psi_cpu: self.psi_cpu_ratio,
            steal: self.steal_ratio,
            gc_share: self.gc_ratio,
            full_gc: self.full_gc,
            heap: if self.heap_ratio < 1.0 {
                self.heap_ratio
            } else {
                f64::INFINITY
            },
            gc_shift: self.gc_shift_ratio,
            own_share: self.own_ratio,
        }
    }
}

/// The ranges of the options end at a day, far below 2^64 ns.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
