//! The signals of the whole host.

use tidegate_abi::signal::SignalId;

use super::kept_file::{KeptFile, ReadBuffer};
use super::load::LoadWatch;
use super::meter::to_f64;
use super::parse::cpu_set::CpuSet;
use super::parse::load_average;
use super::parse::proc_stat::{self, CpuTimes, ProcStat};
use super::pressure::PressureSignals;
use super::reading::{Fault, Missing, Named as _, Readings};
use super::roots::Roots;

const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";
const PRESSURE_CPU: &str = "/proc/pressure/cpu";

/// Reads CPU, load, run queue and pressure of the host.
#[derive(Debug)]
pub(crate) struct HostSignals {
    stat: KeptFile,
    loadavg: KeptFile,
    load_watch: LoadWatch,
    pressure: PressureSignals,
    last_times: Option<CpuTimes>,
    online: CpuSet,
}

impl HostSignals {
    /// Readers below the given trees; nothing is opened yet.
    pub(crate) fn new(roots: &Roots) -> Self {
        Self {
            stat: KeptFile::new(roots.proc_file("stat")),
            loadavg: KeptFile::new(roots.proc_file("loadavg")),
            load_watch: LoadWatch::default(),
            pressure: PressureSignals::new([
                (PRESSURE_CPU, roots.proc_file("pressure/cpu")),
                ("/proc/pressure/memory", roots.proc_file("pressure/memory")),
                ("/proc/pressure/io", roots.proc_file("pressure/io")),
            ]),
            last_times: None,
            online: CpuSet::EMPTY,
        }
    }

    /// CPUs that were online at the last sample that could tell; empty if none could.
    pub(crate) fn online(&self) -> &CpuSet {
        &self.online
    }

    /// Takes one sample of every signal of the host.
    pub(crate) fn sample(&mut self, now_ns: u64, buffer: &mut ReadBuffer, out: &mut Readings) {
        let stat = self.stat.read(buffer).map(proc_stat::parse);
        match &stat {
            Ok(stat) => self.take_stat(stat, out),
            Err(fault) => stat_missing(*fault, out),
        }
        let tasks = stat.and_then(|stat| Ok(stat.running?.saturating_add(stat.blocked?)));
        self.take_load(now_ns, tasks, buffer, out);
        self.pressure.sample(now_ns, buffer, out);
        let undefined = Missing {
            source: PRESSURE_CPU,
            fault: Fault::Undefined,
        };
        out.set(SignalId::PsiCpuFull, Err(undefined));
        for id in [SignalId::Throttle, SignalId::ThrottledTime, SignalId::Burst] {
            out.set(
                id,
                Err(Missing {
                    source: "cpu.stat",
                    fault: Fault::GroupOnly,
                }),
            );
        }
    }

    /// Load averages, unless they stand still while the number of tasks does not.
    fn take_load(
        &mut self,
        now_ns: u64,
        tasks: Result<u64, Fault>,
        buffer: &mut ReadBuffer,
        out: &mut Readings,
    ) {
        let loads = self.loadavg.read(buffer).and_then(load_average::parse);
        let is_frozen = match (loads, tasks) {
            (Ok(loads), Ok(tasks)) => self.load_watch.is_frozen(now_ns, loads.minutes, tasks),
            _ => false,
        };
        let minutes = match loads {
            Ok(_) if is_frozen => [Err(Fault::Frozen); 3],
            Ok(loads) => loads.minutes.map(Ok),
            Err(fault) => [Err(fault); 3],
        };
        let ids = [SignalId::Load1, SignalId::Load5, SignalId::Load15];
        for (id, load) in ids.into_iter().zip(minutes) {
            out.set(id, load.named(LOADAVG));
        }
    }

    fn take_stat(&mut self, stat: &ProcStat, out: &mut Readings) {
        if !stat.online.is_empty() {
            self.online = stat.online;
        }
        let cpus = f64::from(self.online.count());
        let known = (cpus > 0.0).then_some(cpus).ok_or(Fault::NoField("cpu0"));
        out.set(SignalId::EffectiveCpus, known.named(STAT));
        out.set(SignalId::Runnable, stat.running.map(to_f64).named(STAT));
        out.set(SignalId::Blocked, stat.blocked.map(to_f64).named(STAT));
        let shares = stat.times.and_then(|times| self.shares_since_last(times));
        let mut put = |id, share: Result<f64, Fault>| out.set(id, share.named(STAT));
        put(SignalId::Cpu, shares.map(|shares| shares.busy));
        put(SignalId::CpuUser, shares.map(|shares| shares.user));
        put(SignalId::CpuSystem, shares.map(|shares| shares.system));
        put(SignalId::Steal, shares.and_then(|shares| shares.steal));
        put(
            SignalId::UsedCpus,
            shares.and_then(|shares| Ok(shares.used * known?)),
        );
    }

    fn shares_since_last(&mut self, times: CpuTimes) -> Result<Shares, Fault> {
        let last = self.last_times.replace(times).ok_or(Fault::FirstSample)?;
        Shares::between(last, times)
    }
}

/// Shares of the CPU time between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shares {
    /// All that was not idle; time that the hypervisor took is not idle.
    busy: f64,
    /// Busy less steal: what the host's CPUs worked.
    used: f64,
    user: f64,
    system: f64,
    steal: Result<f64, Fault>,
}

impl Shares {
    /// A part that went back (the kernel's idle times can) discards the sample.
    fn between(last: CpuTimes, now: CpuTimes) -> Result<Self, Fault> {
        let grown = |now: u64, last: u64| now.checked_sub(last).ok_or(Fault::WentBack);
        let total = match grown(now.total, last.total)? {
            0 => return Err(Fault::NoTimePassed),
            total => to_f64(total),
        };
        let idle = to_f64(grown(now.idle, last.idle)?) / total;
        let stolen = match (now.steal, last.steal) {
            (Some(now), Some(last)) => grown(now, last).map(|ticks| to_f64(ticks) / total),
            _ => Err(Fault::NoField("steal")),
        };
        let busy = (1.0 - idle).max(0.0);
        Ok(Self {
            busy,
            used: (busy - stolen.unwrap_or(0.0)).max(0.0),
            user: to_f64(grown(now.user, last.user)?) / total,
            system: to_f64(grown(now.system, last.system)?) / total,
            steal: stolen,
        })
    }
}

fn stat_missing(fault: Fault, out: &mut Readings) {
    for id in [
        SignalId::Cpu,
        SignalId::CpuUser,
        SignalId::CpuSystem,
        SignalId::Steal,
        SignalId::UsedCpus,
        SignalId::EffectiveCpus,
        SignalId::Runnable,
        SignalId::Blocked,
    ] {
        out.set(
            id,
            Err(Missing {
                source: STAT,
                fault,
            }),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn host_in(dir: &Path) -> HostSignals {
        HostSignals::new(&Roots {
            proc: dir.to_path_buf(),
            cgroup: dir.to_path_buf(),
        })
    }

    fn sampled(stats: &[&str]) -> Readings {
        let dir = tempfile::tempdir().unwrap();
        let mut host = host_in(dir.path());
        let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
        for (tick, stat) in (1..).zip(stats) {
            std::fs::write(dir.path().join("stat"), stat).unwrap();
            host.sample(tick * 100_000_000, &mut buffer, &mut out);
        }
        out
    }

    #[test]
    fn steal_is_told_apart_and_is_not_idle() {
        let out = sampled(&[
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0\ncpu1 0\nprocs_running 3\nprocs_blocked 1\n",
            "cpu  20 10 8 40 10 1 1 10 5 0\ncpu0 0\ncpu1 0\nprocs_running 4\nprocs_blocked 2\n",
        ]);
        let value = |id| out.value(id).unwrap();
        assert!((value(SignalId::Cpu) - 0.5).abs() < 1e-9);
        assert!((value(SignalId::Steal) - 0.1).abs() < 1e-9);
        assert!((value(SignalId::CpuUser) - 0.3).abs() < 1e-9);
        assert!((value(SignalId::CpuSystem) - 0.1).abs() < 1e-9);
        assert!((value(SignalId::UsedCpus) - 0.8).abs() < 1e-9);
        assert!((value(SignalId::EffectiveCpus) - 2.0).abs() < 1e-9);
        assert!((value(SignalId::Runnable) - 4.0).abs() < 1e-9);
        assert!((value(SignalId::Blocked) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_missing_until_there_are_two_good_samples() {
        let cpu = |stats: &[&str]| sampled(stats).get(SignalId::Cpu).get().unwrap_err().fault;
        assert_eq!(cpu(&["cpu  1 1 1 1\n"]), Fault::FirstSample);
        assert_eq!(
            cpu(&["cpu  1 1 1 1\n", "cpu  1 1 1 1\n"]),
            Fault::NoTimePassed
        );
        assert_eq!(cpu(&["cpu  1 1 1 9\n", "cpu  9 9 9 8\n"]), Fault::WentBack);
        assert_eq!(cpu(&["cpu  1 1 1 9\n", ""]), Fault::Empty);
        assert_eq!(cpu(&["cpu  1 1 1 9\n", "intr 5\n"]), Fault::NoField("cpu"));
    }

    #[test]
    fn a_load_average_that_stands_still_over_changing_tasks_is_not_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = host_in(dir.path());
        let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
        std::fs::write(dir.path().join("loadavg"), "0.72 0.29 0.13 1/87 6277\n").unwrap();
        for tick in 1..=60 {
            assert!(out.get(SignalId::Load1).value().is_some() || tick == 1);
            let stat = format!("procs_running {}\nprocs_blocked 0\n", 1 + tick % 5);
            std::fs::write(dir.path().join("stat"), stat).unwrap();
            host.sample(tick * 100_000_000, &mut buffer, &mut out);
        }
        for id in [SignalId::Load1, SignalId::Load5, SignalId::Load15] {
            assert_eq!(out.get(id).get().unwrap_err().fault, Fault::Frozen);
        }
    }

    #[test]
    fn the_real_host_tells_its_signals() {
        let mut host = HostSignals::new(&Roots::default());
        let (mut buffer, mut out) = (ReadBuffer::new(), Readings::new());
        host.sample(1, &mut buffer, &mut out);
        for id in [SignalId::EffectiveCpus, SignalId::Load1, SignalId::Runnable] {
            assert!(out.value(id).is_some(), "{:?}", out.get(id));
        }
        assert_eq!(
            out.get(SignalId::Cpu).get().unwrap_err().fault,
            Fault::FirstSample
        );
    }

    #[test]
    fn without_any_file_every_signal_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Readings::new();
        host_in(dir.path()).sample(1, &mut ReadBuffer::new(), &mut out);
        for (id, reading) in out.iter() {
            let missing = reading.get().unwrap_err();
            assert_ne!(missing.fault, Fault::NotSampled, "{id:?}");
        }
    }
}
