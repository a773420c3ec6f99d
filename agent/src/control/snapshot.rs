//! What status and metrics read of the control loop.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use tidegate_limits::bulkhead;
use tidegate_limits::law::PublishedLimits;
use tidegate_segment::ledger::ScopeCounts;

use super::configured::{ConfiguredScope, DeclaredCpus};
use super::scheduling::Scheduling;
use crate::signal::{
    FiredTriggers, Neighbour, Readings, TopThreads, TriggerRefusal, TriggerStates,
};

/// The control loop as it was after a tick.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Ticks so far.
    pub ticks: u64,
    /// Monotonic time of the last tick, ns.
    pub now_ns: u64,
    /// How late the last tick was.
    pub late: Duration,
    /// What 99 of 100 ticks of the last minute were not later than.
    pub late_p99: Duration,
    /// Whether decisions read the time stamp counter.
    pub uses_counter: bool,
    /// How the sampler thread is scheduled.
    pub scheduling: Scheduling,
    /// What can make a tick come early.
    pub triggers: Triggers,
    /// Events that nobody took in time.
    pub events_lost: u64,
    /// Ticks of scopes that were measured and could not be recorded.
    pub recording_lost: u64,
    /// Times that the recording was found gone or cut off, and was begun anew.
    pub recordings_begun_anew: u64,
    /// The scopes, the host first.
    pub scopes: Vec<ScopeSnapshot>,
    /// The scopes that the configuration names, once they were searched for.
    pub configured: Vec<ConfiguredScope>,
}

impl Snapshot {
    /// Where the time comes from: the word used in reports.
    pub const fn clock(&self) -> &'static str {
        if self.uses_counter {
            "counter"
        } else {
            "kernel"
        }
    }
}

/// The pressure triggers of the sampler thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triggers {
    /// The form of each, or why there is none.
    pub states: TriggerStates,
    /// How often each made a tick come early.
    pub early: [u64; 3],
}

impl Triggers {
    /// These made a tick come early.
    pub(super) fn count(&mut self, fired: FiredTriggers) {
        for (early, fired) in self.early.iter_mut().zip(fired) {
            *early = early.saturating_add(u64::from(fired));
        }
    }
}

impl Default for Triggers {
    fn default() -> Self {
        Self {
            states: [Err(TriggerRefusal::Off); 3],
            early: [0; 3],
        }
    }
}

/// A scope as it was after a tick.
#[derive(Debug, Clone)]
pub struct ScopeSnapshot {
    /// Its place on the board.
    pub index: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Path of its group below the mount of the cpu controller; `None` is the host.
    pub cgroup: Option<Arc<Path>>,
    /// Which of its threads used most CPU; none are told of the host.
    pub threads: TopThreads,
    /// How its resources are held that fill it while its CPU is idle; `None` is never.
    pub bulkhead: Option<bulkhead::BulkheadSettings>,
    /// What was measured.
    pub readings: Readings,
    /// CPUs that are declared for it, if any are.
    pub declared_cpus: Option<DeclaredCpus>,
    /// Load average, for all CPUs, at which the operator's mark is passed; `None` where there is none.
    pub load_mark: Option<f64>,
    /// What the law said.
    pub published: PublishedLimits,
    /// Monotonic time of the last change of state, ns.
    pub since_ns: u64,
    /// Changes of state so far.
    pub changes: u64,
    /// Level from which requests of the first tenant are cut; `None` = none.
    pub cutoff: Option<u32>,
    /// Times that shedding was found to be ineffective.
    pub ineffective_times: u64,
    /// Callers without a permit that were admitted so far.
    pub one_shots: u64,
    /// Requests that it would have refused so far if it had not only observed.
    pub observed: u64,
    /// Counts over all tenants.
    pub counts: ScopeCounts,
    /// The slot by which programs in the kernel know its group.
    pub kernel_slot: Option<u32>,
    /// Who takes the CPU from it most often, if anybody does.
    pub neighbour: Option<Neighbour>,
}

/// Holds the last snapshot for its readers.
#[derive(Debug, Clone, Default)]
pub(super) struct SnapshotCell(Arc<Mutex<Snapshot>>);

impl SnapshotCell {
    /// A cell with room for so many scopes.
    pub(super) fn with_room(scopes: usize) -> Self {
        Self(Arc::new(Mutex::new(Snapshot {
            scopes: Vec::with_capacity(scopes),
            ..Snapshot::default()
        })))
    }

    /// A copy of the last snapshot.
    pub(super) fn get(&self) -> Snapshot {
        self.look(Snapshot::clone)
    }

    /// A look at the last snapshot.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        // A snapshot is plain data: one that a panic left half filled is still readable.
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&held)
    }

    /// Fills the snapshot in place; while a reader holds it the old one stays.
    pub(super) fn fill(&self, fill: impl FnOnce(&mut Snapshot)) {
        match self.0.try_lock() {
            Ok(mut held) => fill(&mut held),
            Err(TryLockError::Poisoned(held)) => fill(&mut held.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}
