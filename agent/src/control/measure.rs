//! From readings and counts to a sample of the law.

use tidegate_abi::signal::SignalId;
use tidegate_limits::law::Sample;
use tidegate_segment::ledger::ScopeCounts;

use crate::signal::{Group, Limiter, Readings};

/// A tick of one scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tick<'a> {
    pub length_ns: u64,
    pub host: &'a Readings,
    /// The scope's group; `None` is the host itself.
    pub group: Option<&'a Group>,
    /// Counts of the scope over all tenants, and what they were a tick ago.
    pub counts: &'a ScopeCounts,
    pub before: &'a ScopeCounts,
}

impl Tick<'_> {
    /// What the law takes of it.
    pub(super) fn sample(&self) -> Sample {
        let counted =
            |field: fn(&ScopeCounts) -> u64| grown(field(self.counts), field(self.before));
        let measured = match self.group {
            Some(group) => group_sample(group, self.host),
            None => host_sample(self.host),
        };
        Sample {
            tick_ns: self.length_ns,
            inflight: u32::try_from(self.counts.inflight).unwrap_or(u32::MAX),
            successes: counted(|counts| counts.success),
            rt_ns: counted(|counts| counts.rt_ns),
            passed: counted(|counts| counts.passed),
            shed: counted(|counts| counts.shed),
            ..measured
        }
    }
}

fn host_sample(host: &Readings) -> Sample {
    let cpus = host.value(SignalId::EffectiveCpus);
    let over_cpus = |id| Some(host.value(id)? / cpus?);
    // One of the tasks that run is the reader itself.
    let waiting = |runnable: f64| Some((runnable - 1.0 - cpus?).max(0.0));
    Sample {
        cpus,
        busy: host.value(SignalId::Cpu),
        waiters: host.value(SignalId::Runnable).and_then(waiting),
        psi_cpu: host.value(SignalId::PsiCpu),
        steal: host.value(SignalId::Steal),
        load_per_cpu: over_cpus(SignalId::Load1),
        ..Sample::default()
    }
}

fn group_sample(group: &Group, host: &Readings) -> Sample {
    let readings = group.readings();
    let own = readings.value(SignalId::Cpu).map(|share| share.min(1.0));
    Sample {
        cpus: readings.value(SignalId::EffectiveCpus),
        busy: group_busy(own, group.limiter(), host),
        own,
        throttle: readings.value(SignalId::Throttle),
        throttled_time: readings.value(SignalId::ThrottledTime),
        psi_cpu: readings.value(SignalId::PsiCpu),
        steal: host.value(SignalId::Steal),
        ..Sample::default()
    }
}

/// Busy share of the CPUs that a group may use. A group without CPUs of its own is short of CPU as
/// well when others keep the host busy.
fn group_busy(own: Option<f64>, limiter: Limiter<'_>, host: &Readings) -> Option<f64> {
    match limiter {
        Limiter::CpuSet => own,
        Limiter::Quota(_) | Limiter::Online => match (own, host.value(SignalId::Cpu)) {
            (Some(own), Some(host)) => Some(own.max(host)),
            (own, host) => own.or(host),
        },
    }
}

/// Growth of a free-running count. Counts of a seat are zeroed when another process takes it; that
/// reads as no growth.
fn grown(now: u64, before: u64) -> u64 {
    let grown = now.wrapping_sub(before);
    if grown > u64::MAX / 2 { 0 } else { grown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Missing;

    fn readings(values: &[(SignalId, f64)]) -> Readings {
        let mut readings = Readings::new();
        for &(id, value) in values {
            readings.set(id, Ok::<f64, Missing>(value));
        }
        readings
    }

    #[test]
    fn counts_are_taken_as_growth_and_never_shrink() {
        let before = ScopeCounts {
            inflight: 9,
            passed: u64::MAX - 1,
            success: 100,
            rt_ns: 5_000,
            refused: 7,
            shed: 50,
        };
        let counts = ScopeCounts {
            inflight: 3,
            passed: 4,
            success: 110,
            rt_ns: 9_000,
            refused: 9,
            shed: 0,
        };
        let host = Readings::new();
        let tick = Tick {
            length_ns: 100,
            host: &host,
            group: None,
            counts: &counts,
            before: &before,
        };
        let sample = tick.sample();
        assert_eq!((sample.inflight, sample.tick_ns), (3, 100));
        assert_eq!((sample.successes, sample.rt_ns), (10, 4_000));
        assert_eq!((sample.passed, sample.shed), (6, 0));
        assert_eq!(
            (sample.busy, sample.cpus, sample.waiters),
            (None, None, None)
        );
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
        assert_eq!(group_busy(Some(0.2), Limiter::Online, &host), Some(0.95));
        assert_eq!(group_busy(Some(0.2), Limiter::CpuSet, &host), Some(0.2));
        assert_eq!(group_busy(None, Limiter::Online, &host), Some(0.95));
        assert_eq!(
            group_busy(Some(0.2), Limiter::Online, &Readings::new()),
            Some(0.2)
        );
    }
}
