//! What is told of the programs in the kernel: their part of the status and of a scrape.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ListedWord;
use crate::control::{ScopeSnapshot, Snapshot};
use crate::ebpf::{PauseTotals, ProgramReport, Rung};
use crate::telemetry::metric::MetricId;
use crate::telemetry::scrape::{OTHER, Scrape};

/// Which kernel programs run, and what they cost.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EbpfReport {
    /// Step of the ladder in use.
    pub rung: ListedWord,
    /// Why it is not a better one.
    pub reason: String,
    /// What would make it the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<ListedWord>,
    /// Share of one CPU that they take.
    pub overhead: f64,
    /// Share of one CPU that they may take.
    pub max_overhead: f64,
    /// Runs of all programs, 1/s.
    pub runs_per_s: f64,
    /// Mean time of a run, ns.
    pub run_ns: f64,
    /// What was seen and could not be told.
    pub lost: LostReport,
    /// Groups that are kept apart.
    pub groups: usize,
    /// Groups that found no room.
    pub groups_left_out: usize,
    /// Groups that there is room for.
    pub capacity: u32,
    /// Libraries of JVMs with probes.
    pub jvm_libraries: usize,
    /// Why a library of a JVM has no probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_fault: Option<String>,
    /// Why run queues are not sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<String>,
}

/// What was seen and could not be told.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LostReport {
    /// Waits for a CPU.
    pub waits: u64,
    /// Pauses of JVMs.
    pub pauses: u64,
    /// Pauses of which only one end was seen.
    pub unpaired: u64,
}

/// Who takes the CPU from a scope most often.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NeighbourReport {
    /// Its scope; `other` where it is none of ours.
    pub scope: String,
    /// Times it took the CPU, 1/s.
    pub per_second: f64,
}

impl EbpfReport {
    /// The programs as they were at the last look; `None` is an agent that could not start the
    /// thread for them.
    pub(super) fn of(report: Option<&ProgramReport>) -> Self {
        let Some(report) = report else {
            return Self::without();
        };
        Self {
            rung: report.rung.name().into(),
            reason: report.reason(),
            remedy: report
                .missed
                .first()
                .map(|missed| missed.lack.remedy().into()),
            overhead: report.overhead,
            max_overhead: report.max_overhead,
            runs_per_s: report.runs_per_s,
            run_ns: report.run_ns,
            lost: LostReport {
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
            rung: Rung::Files.name().into(),
            reason: "the thread for kernel programs could not be started".to_owned(),
            ..Self::default()
        }
    }
}

impl NeighbourReport {
    /// Who takes the CPU from a scope most often, by the name of its scope.
    pub(super) fn of(scope: &ScopeSnapshot, all: &[ScopeSnapshot]) -> Option<Self> {
        let neighbour = scope.neighbour?;
        let known = all
            .iter()
            .find(|other| other.kernel_slot == Some(neighbour.slot()));
        Some(Self {
            scope: known.map_or(OTHER, |known| &*known.name).to_owned(),
            per_second: neighbour.per_second(),
        })
    }
}

/// Fills in the programs, and the pauses of the scopes.
pub(super) fn fill(scrape: &mut Scrape, report: &ProgramReport, snapshot: &Snapshot) {
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
