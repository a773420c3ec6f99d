//! From readings and counts to a sample of the law.

use tidegate_abi::signal::SignalId;
use tidegate_limits::law::Sample;
use tidegate_limits::number::whole_u32;
use tidegate_segment::ledger::ScopeCounts;

use crate::procfs::{Missing, NoValue};
use crate::signal::{CpusBusy, Readings};

/// A tick of one scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tick<'a> {
    pub length_ns: u64,
    pub host: &'a Readings,
    /// Share of the host's CPUs that its services used; `None` = not known.
    pub services: Option<f64>,
    /// Readings of the scope's group and how busy its CPUs were; `None` is the host itself.
    pub group: Option<(&'a Readings, CpusBusy)>,
    /// What it counted in the tick over all tenants, and what it has in flight.
    pub counts: ScopeCounts,
    /// Connections that wait at its listeners.
    pub accept_queue: Result<u32, Missing>,
    /// Callers without a permit that it admitted in the tick.
    pub one_shot: u64,
    /// Requests in flight whose resource a bulkhead holds.
    pub capped: u32,
    /// Requests that it would have refused in the tick if it did not only observe.
    pub observed: u64,
}

impl Tick<'_> {
    /// What the law takes of it.
    pub(super) fn sample(&self) -> Sample {
        let measured = match self.group {
            Some((readings, cpus)) => group_sample(readings, cpus, self.host),
            None => Sample {
                own: self.services,
                ..host_sample(self.host)
            },
        };
        Sample {
            tick_ns: self.length_ns,
            inflight: u32::try_from(self.counts.inflight).unwrap_or(u32::MAX),
            capped: self.capped,
            successes: self.counts.success,
            rt_ns: self.counts.rt_ns,
            passed: self.passed(),
            one_shot: self.one_shot.min(self.passed()),
            shed: self.counts.shed,
            accept_queue: self.accept_queue.ok(),
            ..measured
        }
    }
}

impl Tick<'_> {
    /// Requests admitted. The agent decides for callers without a permit, in its own seat: those are
    /// counted in the host, and not in the scope they come from.
    fn passed(&self) -> u64 {
        let passed = self.counts.passed;
        match self.group {
            Some(_) => passed.saturating_add(self.one_shot),
            None => passed,
        }
    }
}

/// Where the number of tasks that wait for a CPU comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaiterRung {
    /// Time that tasks waited, as programs in the kernel see it.
    Seen,
    /// Time that tasks waited, as the kernel sums it.
    Waited,
    /// Tasks that can run, beyond the CPUs.
    Runnable,
    /// Nothing tells it.
    None,
}

impl WaiterRung {
    /// The best that these readings allow.
    pub fn of(readings: &Readings) -> Self {
        let has = |id| readings.value(id).is_some();
        let by_programs = match readings.get(SignalId::RunqueueWaitP99).get() {
            Ok(_wait) => true,
            Err(missing) => matches!(missing.fault, NoValue::NoTurn | NoValue::FirstSample),
        };
        if has(SignalId::RunqueueWait) && by_programs {
            Self::Seen
        } else if has(SignalId::RunqueueWait) {
            Self::Waited
        } else if has(SignalId::Runnable) && has(SignalId::EffectiveCpus) {
            Self::Runnable
        } else {
            Self::None
        }
    }

    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seen => "ebpf",
            Self::Waited => "schedstat",
            Self::Runnable => "runnable",
            Self::None => "none",
        }
    }

    /// Waiting tasks by this rung; `runnable` are those that can run or run.
    fn waiters(self, readings: &Readings, runnable: Option<f64>) -> Option<f64> {
        match self {
            Self::Seen | Self::Waited => readings.value(SignalId::RunqueueWait),
            Self::Runnable => {
                let beyond = runnable? - readings.value(SignalId::EffectiveCpus)?;
                Some(beyond.max(0.0))
            }
            Self::None => None,
        }
    }
}

/// Busy share of the host below which what waits on it waits for something else than the host: for its own quota, or
/// for the few CPUs that it may run on.
const BUSY: f64 = 0.7;

fn host_sample(host: &Readings) -> Sample {
    let busy = host.value(SignalId::Cpu);
    // Of a host that does not tell how busy it is, its pressure alone tells.
    let is_busy = busy.is_none_or(|busy| busy >= BUSY);
    let cpus = host.value(SignalId::EffectiveCpus);
    let over_cpus = |id| Some(host.value(id)? / cpus?);
    // One of the tasks that run is the reader itself.
    let runnable = host.value(SignalId::Runnable);
    let runnable = runnable.map(|tasks| (tasks - 1.0).max(0.0));
    let waiters = WaiterRung::of(host).waiters(host, runnable);
    Sample {
        cpus,
        busy,
        // Tasks of a throttled group wait too, but cannot run: they are no queue of the host.
        waiters: waiters.map(|waiters| waiters.min(runnable.unwrap_or(waiters))),
        psi_cpu: host.value(SignalId::PsiCpu).filter(|_| is_busy),
        steal: host.value(SignalId::Steal),
        load_per_cpu: over_cpus(SignalId::Load1),
        ..Sample::default()
    }
}

fn group_sample(readings: &Readings, cpus: CpusBusy, host: &Readings) -> Sample {
    let own = readings.value(SignalId::Cpu).map(|share| share.min(1.0));
    Sample {
        busy: group_busy(own, cpus, host),
        own,
        steal: host.value(SignalId::Steal),
        ..group_measured(readings)
    }
}

/// What a group's readings alone tell.
fn group_measured(readings: &Readings) -> Sample {
    let runnable = readings.value(SignalId::Runnable);
    let collected = readings.value(SignalId::GcShare);
    Sample {
        cpus: readings.value(SignalId::EffectiveCpus),
        waiters: WaiterRung::of(readings).waiters(readings, runnable),
        throttle: readings.value(SignalId::Throttle),
        throttled_time: readings.value(SignalId::ThrottledTime),
        psi_cpu: readings.value(SignalId::PsiCpu),
        gc_share: collected.or_else(|| readings.value(SignalId::GcCpu)),
        full_gc: readings.value(SignalId::FullGc).map(whole_u32),
        heap_used: readings.value(SignalId::HeapUsed),
        threads: readings.value(SignalId::Threads).map(whole_u32),
        ..Sample::default()
    }
}

/// Busy share of the CPUs that a group may use, whoever used them: others may keep them busy.
fn group_busy(own: Option<f64>, cpus: CpusBusy, host: &Readings) -> Option<f64> {
    let all = match cpus {
        CpusBusy::AsHost => host.value(SignalId::Cpu),
        CpusBusy::Share(share) => Some(share),
        CpusBusy::Unknown => None,
    };
    match (own, all) {
        (Some(own), Some(all)) => Some(own.max(all)),
        (own, all) => own.or(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(values: &[(SignalId, f64)]) -> Readings {
        let mut readings = Readings::new();
        for &(id, value) in values {
            readings.set(id, Ok::<f64, Missing>(value));
        }
        readings
    }

    #[test]
    fn counts_of_the_tick_are_the_laws_and_what_is_not_measured_is_nothing() {
        let host = Readings::new();
        let tick = Tick {
            length_ns: 100,
            host: &host,
            services: None,
            group: None,
            counts: ScopeCounts {
                inflight: 3,
                passed: 6,
                success: 10,
                rt_ns: 4_000,
                refused: 2,
                shed: 1,
            },
            accept_queue: Ok(3),
            one_shot: 2,
            capped: 0,
            observed: 0,
        };
        let sample = tick.sample();
        assert_eq!((sample.inflight, sample.tick_ns), (3, 100));
        assert_eq!((sample.successes, sample.rt_ns), (10, 4_000));
        assert_eq!((sample.passed, sample.shed), (6, 1));
        assert_eq!(sample.one_shot, 2);
        assert_eq!(
            (sample.busy, sample.cpus, sample.waiters),
            (None, None, None)
        );
    }

    #[test]
    fn waiters_are_measured_and_runnable_beyond_the_cpus_is_the_rung_below() {
        let group = |values: &[(SignalId, f64)]| group_measured(&readings(values)).waiters;
        let rung = [(SignalId::EffectiveCpus, 1.5), (SignalId::Runnable, 4.0)];
        assert_eq!(group(&rung), Some(2.5));
        assert_eq!(group(&[(SignalId::RunqueueWait, 0.3)]), Some(0.3));
        assert_eq!(group(&[(SignalId::Runnable, 4.0)]), None);
        assert_eq!(group(&[]), None);
    }

    #[test]
    fn waiting_in_a_throttled_group_is_no_queue_of_the_host() {
        let waiters = |runnable| {
            let values = [
                (SignalId::RunqueueWait, 40.0),
                (SignalId::Runnable, runnable),
            ];
            host_sample(&readings(&values)).waiters
        };
        assert_eq!(waiters(2.0), Some(1.0));
        assert_eq!(waiters(60.0), Some(40.0));
        assert_eq!(waiters(0.0), Some(0.0));
    }

    #[test]
    fn field_s15_pressure_of_a_throttled_group_is_no_pressure_of_an_idle_host() {
        let psi = |busy: Option<f64>| {
            let busy = busy.map(|busy| (SignalId::Cpu, busy));
            let values: Vec<_> = busy.into_iter().chain([(SignalId::PsiCpu, 0.99)]).collect();
            host_sample(&readings(&values)).psi_cpu
        };
        assert_eq!(psi(Some(0.22)), None);
        assert_eq!(psi(Some(0.95)), Some(0.99));
        assert_eq!(psi(None), Some(0.99));
    }

    #[test]
    fn a_group_brings_its_collections_and_threads() {
        let sample = group_measured(&readings(&[
            (SignalId::FullGc, 3.0),
            (SignalId::GcCpu, 0.4),
            (SignalId::Threads, 151.0),
        ]));
        assert_eq!((sample.full_gc, sample.gc_share), (Some(3), Some(0.4)));
        assert_eq!(sample.threads, Some(151));
        let sample = group_measured(&readings(&[
            (SignalId::GcShare, 0.2),
            (SignalId::GcCpu, 0.4),
        ]));
        assert_eq!((sample.full_gc, sample.gc_share), (None, Some(0.2)));
    }

    #[test]
    fn the_host_has_load_and_waiters_per_cpu() {
        let sample = host_sample(&readings(&[
            (SignalId::EffectiveCpus, 2.0),
            (SignalId::Cpu, 0.9),
            (SignalId::Load1, 3.0),
            (SignalId::Runnable, 7.0),
        ]));
        assert_eq!(sample.load_per_cpu, Some(1.5));
        assert_eq!(sample.waiters, Some(4.0));
        assert_eq!((sample.busy, sample.own), (Some(0.9), None));
    }

    #[test]
    fn a_group_is_short_of_cpu_when_the_host_is_unless_it_has_its_own() {
        let host = readings(&[(SignalId::Cpu, 0.95)]);
        let busy = |own, cpus| group_busy(own, cpus, &host);
        assert_eq!(busy(Some(0.2), CpusBusy::AsHost), Some(0.95));
        assert_eq!(busy(Some(0.2), CpusBusy::Share(0.6)), Some(0.6));
        assert_eq!(busy(Some(0.9), CpusBusy::Share(0.6)), Some(0.9));
        assert_eq!(busy(Some(0.2), CpusBusy::Unknown), Some(0.2));
        assert_eq!(busy(None, CpusBusy::AsHost), Some(0.95));
        let blind = Readings::new();
        assert_eq!(group_busy(Some(0.2), CpusBusy::AsHost, &blind), Some(0.2));
    }
}
