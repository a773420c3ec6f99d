//! What is told of the programs in the kernel: their part of the status and of a scrape.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::control::{ScopeSnapshot, Snapshot};
use crate::ebpf::{PauseTotals, Report, Rung};
use crate::telemetry::metric::MetricId;
use crate::telemetry::scrape::{OTHER, Scrape};

/// Which kernel programs run, and what they cost.
#[derive(Debug, Serialize)]
pub(super) struct Ebpf {
    rung: &'static str,
    /// Why it is not a better one.
    reason: String,
    /// What would make it the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
    /// Share of one CPU that they take, and that they may take.
    overhead: f64,
    max_overhead: f64,
    runs_per_s: f64,
    run_ns: f64,
    lost: Lost,
    groups: usize,
    groups_left_out: usize,
    capacity: u32,
    jvm_libraries: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    jvm_fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsampled: Option<String>,
}

/// What was seen and could not be told.
#[derive(Debug, Serialize)]
struct Lost {
    waits: u64,
    pauses: u64,
    unpaired: u64,
}

/// Who takes the CPU from a scope most often.
#[derive(Debug, Serialize)]
pub(super) struct Neighbour {
    scope: Arc<str>,
    per_second: f64,
}

impl Ebpf {
    /// The programs as they were at the last look; `None` is an agent that could not start the
    /// thread for them.
    pub(super) fn of(report: Option<&Report>) -> Self {
        let Some(report) = report else {
            return Self::without();
        };
        Self {
            rung: report.rung.name(),
            reason: report.reason(),
            remedy: report.missed.first().map(|missed| missed.lack.remedy()),
            overhead: report.overhead,
            max_overhead: report.max_overhead,
            runs_per_s: report.runs_per_s,
            run_ns: report.run_ns,
            lost: Lost {
                waits: report.counters.waits_lost,
                pauses: report.counters.ring_lost,
                unpaired: report.unpaired,
            },
            groups: report.groups,
            groups_left_out: report.groups_left_out,
            capacity: report.slots,
            jvm_libraries: report.jvm_libraries,
            jvm_fault: report.jvm_fault.clone(),
            unsampled: report.unsampled.clone(),
        }
    }

    fn without() -> Self {
        Self {
            rung: Rung::Files.name(),
            reason: "the thread for kernel programs could not be started".to_owned(),
            remedy: None,
            overhead: 0.0,
            max_overhead: 0.0,
            runs_per_s: 0.0,
            run_ns: 0.0,
            lost: Lost {
                waits: 0,
                pauses: 0,
                unpaired: 0,
            },
            groups: 0,
            groups_left_out: 0,
            capacity: 0,
            jvm_libraries: 0,
            jvm_fault: None,
            unsampled: None,
        }
    }
}

impl Neighbour {
    /// Who takes the CPU from a scope most often, by the name of its scope.
    pub(super) fn of(scope: &ScopeSnapshot, all: &[ScopeSnapshot]) -> Option<Self> {
        let neighbour = scope.neighbour?;
        let known = all
            .iter()
            .find(|other| other.kernel_slot == Some(neighbour.slot()));
        Some(Self {
            scope: known.map_or_else(|| OTHER.into(), |known| Arc::clone(&known.name)),
            per_second: neighbour.per_second(),
        })
    }
}

/// Fills in the programs, and the pauses of the scopes.
pub(super) fn fill(scrape: &mut Scrape, report: &Report, snapshot: &Snapshot) {
    for rung in Rung::ALL {
        scrape.set_flag(MetricId::KernelRung, &[rung.name()], rung == report.rung);
    }
    scrape.set(MetricId::KernelOverhead, &[], report.overhead);
    scrape.set_count(MetricId::KernelRuns, &[], report.counters.runs);
    for (what, count) in [
        ("wait", report.counters.waits_lost),
        ("pause", report.counters.ring_lost),
        ("unpaired", report.unpaired),
    ] {
        scrape.set_count(MetricId::KernelLost, &[what], count);
    }
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    scrape.set_count(MetricId::KernelGroups, &[], count(report.groups));
    scrape.set_count(
        MetricId::KernelGroupsLeftOut,
        &[],
        count(report.groups_left_out),
    );
    scrape.set_count(MetricId::KernelSlots, &[], report.slots.into());
    for scope in &snapshot.scopes {
        if let Some(slot) = scope.kernel_slot {
            fill_pauses(scrape, &scope.name, report.pauses.of(slot));
        }
    }
}

fn fill_pauses(scrape: &mut Scrape, scope: &str, totals: PauseTotals) {
    let summaries = [
        (MetricId::GcPause, totals.collections, totals.collecting_ns),
        (MetricId::Safepoint, totals.safepoints, totals.stopped_ns),
    ];
    for (id, count, sum_ns) in summaries {
        if count > 0 {
            scrape.set_summary(id, &[scope], count, Duration::from_nanos(sum_ns));
        }
    }
}
