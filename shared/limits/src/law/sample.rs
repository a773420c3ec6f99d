//! What one tick measured of one scope.

use super::number::{real, seconds};

/// No real measurement reaches this; it keeps sums finite.
const MOST: f64 = 1e9;

/// Whose use of the scope's CPUs a mark is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CpuUse {
    /// That of everybody who runs on them: the host's mark.
    #[default]
    Everybody,
    /// That of the scope's own tasks: a group does not answer for what others do. Where it is not measured the mark
    /// is not passed.
    Own,
}

/// Measurements of one scope in one tick. `None` is "not measured"; so is a value that is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// Length of the tick, ns.
    pub tick_ns: u64,
    /// Effective CPUs (c).
    pub cpus: Option<f64>,
    /// Requests in flight at the end of the tick.
    pub inflight: u32,
    /// Those of them whose resource a bulkhead holds, see [`crate::bulkhead`]: they have a limit of their own and are
    /// no load of the scope's.
    pub capped: u32,
    /// Connections that wait in the accept queues of the scope's listeners.
    pub accept_queue: Option<u32>,
    /// Requests that ended well in the tick (X).
    pub successes: u64,
    /// Sum of their response times, ns.
    pub rt_ns: u64,
    /// Requests admitted in the tick, with and without a permit.
    pub passed: u64,
    /// Those of them that hold no permit, so that their end is never seen.
    pub one_shot: u64,
    /// Requests refused because of a scope in the tick (F).
    pub shed: u64,
    /// Busy share of the scope's CPUs, whoever used them: 1 − idle share (U).
    pub busy: Option<f64>,
    /// Share of the scope's CPUs that its own tasks used.
    pub own: Option<f64>,
    /// Run-queue wait of the scope's tasks ÷ length of the tick (W).
    pub waiters: Option<f64>,
    /// Share of the quota's periods that were throttled.
    pub throttle: Option<f64>,
    /// Share of the time that was throttled.
    pub throttled_time: Option<f64>,
    /// Share of the time in which some task waited for a CPU.
    pub psi_cpu: Option<f64>,
    /// Share of the CPU time that the hypervisor took.
    pub steal: Option<f64>,
    /// Share of the tick spent in garbage collection.
    pub gc_share: Option<f64>,
    /// Full collections within the last 10 s.
    pub full_gc: Option<u32>,
    /// Share of the largest heap in use; of several JVMs the fullest.
    pub heap_used: Option<f64>,
    /// Live threads of the scope.
    pub threads: Option<u32>,
    /// Load average of the last minute for each effective CPU (host only).
    pub load_per_cpu: Option<f64>,
}

impl Sample {
    /// The same sample with every value that is not finite, negative or absurd as not measured.
    #[must_use]
    pub fn measured(mut self) -> Self {
        for value in [
            &mut self.cpus,
            &mut self.busy,
            &mut self.own,
            &mut self.waiters,
            &mut self.throttle,
            &mut self.throttled_time,
            &mut self.psi_cpu,
            &mut self.steal,
            &mut self.gc_share,
            &mut self.heap_used,
            &mut self.load_per_cpu,
        ] {
            *value = value.filter(|number| (0.0..MOST).contains(number));
        }
        self.cpus = self.cpus.filter(|cpus| *cpus > 0.0);
        self
    }

    /// Share of the CPUs that a mark of an operator looks at.
    pub(super) fn used(&self, by: CpuUse) -> Option<f64> {
        match by {
            CpuUse::Everybody => self.busy,
            CpuUse::Own => self.own,
        }
    }

    /// Requests that are in the service or wait at its door (N), without those that a bulkhead holds.
    pub(super) fn held(&self) -> f64 {
        real(u64::from(self.inflight.saturating_sub(self.capped)))
            + self
                .accept_queue
                .map_or(0.0, |waiting| real(waiting.into()))
    }

    /// Work done in the tick, requests: a caller without a permit counts as done when admitted.
    pub(super) fn done(&self) -> f64 {
        real(self.successes) + real(self.one_shot)
    }

    /// Requests offered in the tick.
    pub(super) fn offered(&self) -> f64 {
        real(self.passed) + real(self.shed)
    }

    /// CPU time that the scope's work used in the tick, seconds. Where the own share is not
    /// measured all that was used counts, and where that is not measured either a full tick does:
    /// then the rate of successes stands for the capacity.
    pub(super) fn cpu_s(&self, cpus: f64) -> f64 {
        let share = self.own.or(self.busy).unwrap_or(1.0).min(1.0);
        share * cpus * self.length_s()
    }

    /// Length of the tick, seconds.
    pub(super) fn length_s(&self) -> f64 {
        seconds(self.tick_ns)
    }
}
