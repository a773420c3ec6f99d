//! What the rest of the agent is told of the kernel's programs.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_segment::sync::{Ordering, Word};

use super::rung::{MissedRung, Rung};
use super::view::Counters;
use crate::procfs::Lack;

/// The programs as they were at the last look, once a second.
#[derive(Debug, Clone)]
pub struct ProgramReport {
    /// Whether the ladder has been climbed once.
    pub settled: bool,
    /// The step in use.
    pub rung: Rung,
    /// The steps above it that were missed or left, and why.
    pub missed: Vec<MissedRung>,
    /// Why the run queues are not sampled, if they are not.
    pub unsampled: Option<String>,
    /// Runs of the programs a second.
    pub runs_per_s: f64,
    /// Time that one run takes, ns.
    pub run_ns: f64,
    /// Share of one CPU that the programs take.
    pub overhead: f64,
    /// Share that the operator allows.
    pub max_overhead: f64,
    /// What the programs count, since they were loaded.
    pub counters: Counters,
    /// Records of pauses that had no partner.
    pub unpaired: u64,
    /// Control groups that have a slot.
    pub groups: usize,
    /// Groups that have none: the table is full.
    pub groups_left_out: usize,
    /// Most groups that are kept apart.
    pub slots: u32,
    /// Libraries of JVMs that are probed.
    pub jvm_libraries: usize,
    /// Why one is not, the last one.
    pub jvm_fault: Option<String>,
    /// Pauses of the JVMs in each slot, since it was first used.
    pub pauses: Arc<PauseTable>,
}

impl ProgramReport {
    /// Before anything is known.
    pub(super) fn starting(slots: u32, max_overhead: f64, pauses: Arc<PauseTable>) -> Self {
        Self {
            settled: false,
            rung: Rung::Files,
            missed: vec![MissedRung::plainly(Rung::Typed, Lack::Starting)],
            unsampled: None,
            runs_per_s: 0.0,
            run_ns: 0.0,
            overhead: 0.0,
            max_overhead,
            counters: Counters::default(),
            unpaired: 0,
            groups: 0,
            groups_left_out: 0,
            slots,
            jvm_libraries: 0,
            jvm_fault: None,
            pauses,
        }
    }

    /// What keeps the pauses of JVMs from this process, if a permission does.
    pub fn probes_denied(&self) -> Option<Lack> {
        self.pauses.is_denied().then_some(Lack::NoProbes)
    }

    /// Why the step in use is not a better one, in one line.
    pub fn reason(&self) -> String {
        if self.missed.is_empty() {
            return match &self.unsampled {
                None => "the best there is".to_owned(),
                Some(why) => format!("the best there is, without samples of the run queues: {why}"),
            };
        }
        let missed: Vec<String> = self.missed.iter().map(ToString::to_string).collect();
        missed.join("; ")
    }
}

/// The report, and who reads it.
#[derive(Debug, Clone)]
pub(super) struct ReportCell(Arc<Mutex<ProgramReport>>);

impl ReportCell {
    pub(super) fn new(report: ProgramReport) -> Self {
        Self(Arc::new(Mutex::new(report)))
    }

    pub(super) fn get(&self) -> ProgramReport {
        // A report is plain data: one that a panic left behind is still readable.
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut ProgramReport)) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut held);
    }
}

/// Pauses of the JVMs in each slot: written by the thread that drains the ring, read by the tick.
#[derive(Debug)]
pub struct PauseTable {
    slots: Box<[SlotPauses]>,
    /// 1 while no JVM may be probed.
    denied: Word,
}

#[derive(Debug)]
struct SlotPauses {
    collections: Word,
    collecting_ns: Word,
    longest_ns: Word,
    safepoints: Word,
    stopped_ns: Word,
}

/// Pauses of one slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseTotals {
    /// Collections that have stopped a JVM.
    pub collections: u64,
    /// For how long, ns, summed.
    pub collecting_ns: u64,
    /// The longest of the last ten seconds, ns.
    pub longest_ns: u64,
    /// Stops for any reason.
    pub safepoints: u64,
    /// For how long, ns, summed.
    pub stopped_ns: u64,
}

impl PauseTable {
    /// A table of zeros.
    pub(crate) fn new(slots: u32) -> Self {
        let slot = |_slot| SlotPauses {
            collections: Word::new(0),
            collecting_ns: Word::new(0),
            longest_ns: Word::new(0),
            safepoints: Word::new(0),
            stopped_ns: Word::new(0),
        };
        Self {
            slots: (0..slots).map(slot).collect(),
            denied: Word::new(0),
        }
    }

    /// Whether there are JVMs whose pauses cannot be seen for want of a permission. Relaxed, as below.
    pub(crate) fn is_denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed) != 0
    }

    /// Says whether that is so.
    pub(super) fn deny(&self, denied: bool) {
        self.denied.store(denied.into(), Ordering::Relaxed);
    }

    /// The pauses of a slot. Relaxed: each word is a figure of its own.
    pub fn of(&self, slot: u32) -> PauseTotals {
        let slot = usize::try_from(slot)
            .ok()
            .and_then(|slot| self.slots.get(slot));
        let Some(slot) = slot else {
            return PauseTotals::default();
        };
        let load = |word: &Word| word.load(Ordering::Relaxed);
        PauseTotals {
            collections: load(&slot.collections),
            collecting_ns: load(&slot.collecting_ns),
            longest_ns: load(&slot.longest_ns),
            safepoints: load(&slot.safepoints),
            stopped_ns: load(&slot.stopped_ns),
        }
    }

    /// Puts the pauses of a slot in.
    pub(crate) fn set(&self, slot: u32, totals: PauseTotals) {
        let slot = usize::try_from(slot)
            .ok()
            .and_then(|slot| self.slots.get(slot));
        let Some(slot) = slot else { return };
        let store = |word: &Word, value| word.store(value, Ordering::Relaxed);
        store(&slot.collections, totals.collections);
        store(&slot.collecting_ns, totals.collecting_ns);
        store(&slot.longest_ns, totals.longest_ns);
        store(&slot.safepoints, totals.safepoints);
        store(&slot.stopped_ns, totals.stopped_ns);
    }
}
