//! The signals of the whole host.

mod per_cpu;
mod plausible;
mod shares;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use tidegate_abi::signal::SignalId;

pub(crate) use self::per_cpu::PerCpu;
use self::shares::Shares;
use super::load::LoadWatch;
use super::meter::{Meter, Step, to_f64};
use super::parse::cpu_set::CpuSet;
use super::parse::load_average::{self, LoadAverage};
use super::parse::proc_stat::{self, CpuTimes, ProcStat};
use super::parse::sched_stat;
use super::pressure::PressureSignals;
use super::reading::Readings;
use crate::procfs::Roots;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::parse::mount_info;
use crate::procfs::{NamedSource as _, NoValue};

const STAT: &str = "/proc/stat";
const LOADAVG: &str = "/proc/loadavg";
const SCHEDSTAT: &str = "/proc/schedstat";
const PRESSURE_CPU: &str = "/proc/pressure/cpu";

const NS_PER_S: f64 = 1e9;

/// Reads CPU, load, run queue and pressure of the host.
#[derive(Debug)]
pub(crate) struct HostSignals {
    stat: KeptFile,
    loadavg: KeptFile,
    load_watch: LoadWatch,
    pressure: PressureSignals,
    schedstat: KeptFile,
    last_times: Option<CpuTimes>,
    switches: Meter,
    waits: Meter,
    online: CpuSet,
    per_cpu: PerCpu,
    /// Whether the kernel itself fills `/proc/stat`.
    is_kernels: bool,
    /// How late the ticks were, s.
    late_s: Result<f64, NoValue>,
}

impl HostSignals {
    /// Readers below the given trees; nothing is opened yet.
    pub(crate) fn new(roots: &Roots) -> Self {
        let mounts = std::fs::read(roots.proc_file("self/mountinfo")).unwrap_or_default();
        Self {
            is_kernels: !mount_info::lays_over(&mounts, Path::new(STAT)),
            stat: KeptFile::new(roots.proc_file("stat")),
            loadavg: KeptFile::new(roots.proc_file("loadavg")),
            load_watch: LoadWatch::default(),
            pressure: PressureSignals::new([
                (PRESSURE_CPU, roots.proc_file("pressure/cpu")),
                ("/proc/pressure/memory", roots.proc_file("pressure/memory")),
                ("/proc/pressure/io", roots.proc_file("pressure/io")),
            ]),
            schedstat: KeptFile::new(roots.proc_file("schedstat")),
            last_times: None,
            switches: Meter::default(),
            waits: Meter::default(),
            online: CpuSet::EMPTY,
            per_cpu: PerCpu::default(),
            late_s: Err(NoValue::FirstSample),
        }
    }

    /// Takes down how late the ticks were.
    pub(crate) fn tell_late(&mut self, late_p99: Duration) {
        self.late_s = Ok(late_p99.as_secs_f64());
    }

    /// CPUs that were online at the last sample that could tell; empty if none could.
    pub(crate) fn online(&self) -> &CpuSet {
        &self.online
    }

    /// Whether the kernel itself tells the CPUs, and not a file system that is laid over its file.
    pub(crate) fn is_kernels(&self) -> bool {
        self.is_kernels
    }

    /// What each CPU did between the last two samples.
    pub(crate) fn per_cpu(&self) -> &PerCpu {
        &self.per_cpu
    }

    /// Takes one sample of every signal of the host.
    pub(crate) fn sample(&mut self, now_ns: u64, buffer: &mut ReadBuffer, out: &mut Readings) {
        let load = self.loadavg.read(buffer).and_then(load_average::parse);
        let stat = self.stat.read(buffer);
        match stat {
            Ok(bytes) => self.per_cpu.take(bytes),
            Err(_unread) => self.per_cpu.miss(),
        }
        let mut stat = stat.map_or_else(ProcStat::missing, proc_stat::parse);
        plausible::check(&mut stat, load.and_then(|load| load.threads));
        self.take_stat(now_ns, &stat, out);
        let tasks = stat
            .running
            .and_then(|running| Ok(running.saturating_add(stat.blocked?)));
        self.take_load(now_ns, tasks, load, out);
        let waited = self
            .schedstat
            .read(buffer)
            .and_then(sched_stat::parse_host_wait_ns);
        let waiting = waited.and_then(|waited_ns| self.waits.step(now_ns, waited_ns));
        out.set(
            SignalId::RunqueueWait,
            waiting.map(Step::rate).named(SCHEDSTAT),
        );
        self.pressure.sample(now_ns, buffer, out);
        out.set(
            SignalId::PsiCpuFull,
            Err(NoValue::Undefined).named(PRESSURE_CPU),
        );
        out.set(SignalId::TickLate, self.late_s.named("sampler"));
        // Services show their listeners to the control loop, not to the sampler.
        let queue = Err(NoValue::NoListener).named("sock_diag");
        out.set(SignalId::AcceptQueue, queue);
        group_only(out);
    }

    fn take_stat(&mut self, now_ns: u64, stat: &ProcStat, out: &mut Readings) {
        if let Ok(online) = &stat.online {
            self.online = *online;
        }
        let cpus = stat.online.as_ref().map(|online| f64::from(online.count()));
        let cpus = cpus.map_err(|fault| *fault);
        let shares = stat.times.and_then(|times| self.shares_since_last(times));
        let switches = stat
            .switches
            .and_then(|count| self.switches.step(now_ns, count));
        let mut put = |id, value: Result<f64, NoValue>| out.set(id, value.named(STAT));
        put(SignalId::EffectiveCpus, cpus);
        put(SignalId::Runnable, stat.running.map(to_f64));
        put(SignalId::Blocked, stat.blocked.map(to_f64));
        put(
            SignalId::ContextSwitches,
            switches.map(|step| step.rate() * NS_PER_S),
        );
        put(SignalId::Cpu, shares.map(|shares| shares.busy));
        put(SignalId::CpuUser, shares.map(|shares| shares.user));
        put(SignalId::CpuSystem, shares.map(|shares| shares.system));
        put(SignalId::Steal, shares.and_then(|shares| shares.steal));
        put(
            SignalId::UsedCpus,
            shares.and_then(|shares| Ok(shares.used * cpus?)),
        );
    }

    fn shares_since_last(&mut self, times: CpuTimes) -> Result<Shares, NoValue> {
        let last = self.last_times.replace(times).ok_or(NoValue::FirstSample)?;
        Shares::between(last, times)
    }

    /// Load averages, unless they stand still while the number of tasks does not.
    fn take_load(
        &mut self,
        now_ns: u64,
        tasks: Result<u64, NoValue>,
        load: Result<LoadAverage, NoValue>,
        out: &mut Readings,
    ) {
        let is_frozen = match (load, tasks) {
            (Ok(load), Ok(tasks)) => self.load_watch.is_frozen(now_ns, load.minutes, tasks),
            _ => false,
        };
        let minutes = match load {
            Ok(_) if is_frozen => [Err(NoValue::Frozen); 3],
            Ok(load) => load.minutes.map(Ok),
            Err(fault) => [Err(fault); 3],
        };
        let ids = [SignalId::Load1, SignalId::Load5, SignalId::Load15];
        for (id, minute) in ids.into_iter().zip(minutes) {
            out.set(id, minute.named(LOADAVG));
        }
        let threads = load.and_then(|load| load.threads);
        out.set(SignalId::Threads, threads.map(to_f64).named(LOADAVG));
    }
}

/// CPUs that are online now; `None` = `/proc/stat` cannot be read.
pub fn online_cpus(roots: &Roots) -> Option<u32> {
    let stat = std::fs::read(roots.proc.join("stat")).ok()?;
    let online = proc_stat::parse(&stat).online.ok()?;
    Some(online.count())
}

/// Signals that are told of groups alone.
fn group_only(out: &mut Readings) {
    for id in [SignalId::Throttle, SignalId::ThrottledTime, SignalId::Burst] {
        out.set(id, Err(NoValue::GroupOnly).named("cpu.stat"));
    }
    out.set(
        SignalId::GcCpu,
        Err(NoValue::GroupOnly).named("/proc/PID/task"),
    );
    for id in [SignalId::GcShare, SignalId::FullGc, SignalId::HeapUsed] {
        out.set(id, Err(NoValue::GroupOnly).named("hsperfdata"));
    }
}
