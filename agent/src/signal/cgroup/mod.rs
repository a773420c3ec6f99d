//! The signals of one control group, on v1, v2 and both at once.

mod above;
mod cpu_list;
mod doubt;
mod quota;
mod recent;
mod shared_cpus;
mod throttle;
mod usage;

#[cfg(test)]
mod captures;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tidegate_abi::signal::SignalId;

pub(crate) use self::above::Above;
use self::cpu_list::CpuListChain;
use self::doubt::Doubt;
use self::quota::{ChainSample, QuotaChain};
use self::recent::RecentUse;
pub use self::shared_cpus::CpusBusy;
use self::shared_cpus::SharedCpus;
use self::usage::{Moment, Usage, UsageReader};
use super::host::PerCpu;
use super::parse::cpu_set::CpuSet;
use super::pressure::{self, PressureSignals};
use super::reading::Readings;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::{Missing, NoValue};
use crate::procfs::{Place, Places};

/// What holds a group's CPUs down to their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter<'a> {
    /// The quota of this group: the group itself or one above it, as a path below the mount.
    Quota(&'a Path),
    /// The list of allowed CPUs, of its cpuset or of its processes.
    CpuSet,
    /// The CPUs that are online.
    Online,
}

impl Limiter<'_> {
    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Quota(_of) => "its quota",
            Self::CpuSet => "its CPU set",
            Self::Online => "the host",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum LimitedBy {
    Quota { level: usize },
    CpuSet,
    Online,
}

/// Reads CPU use, limits, throttling and pressure of one group.
#[derive(Debug)]
pub(crate) struct CgroupSignals {
    dir: Result<PathBuf, Missing>,
    usage: Result<UsageReader, Missing>,
    recent: Box<RecentUse>,
    doubt: Doubt,
    quotas: Result<QuotaChain, Missing>,
    cpu_lists: Result<CpuListChain, Missing>,
    pressure: Result<PressureSignals, Missing>,
    limited_by: LimitedBy,
    shared_cpus: SharedCpus,
    cpus_busy: CpusBusy,
    identity: Option<Identity>,
    is_gone: bool,
}

/// Device and inode: which directory stands at a path.
type Identity = (u64, u64);

fn identity(dir: &Path) -> Option<Identity> {
    let found = fs::metadata(dir).ok().filter(fs::Metadata::is_dir)?;
    Some((found.dev(), found.ino()))
}

/// What a sample is taken with. `online` without CPUs is "not known".
#[derive(Debug)]
pub(crate) struct Means<'a> {
    pub(crate) now_ns: u64,
    pub(crate) online: &'a CpuSet,
    /// Whether the kernel itself tells `online` and `per_cpu`, by its own numbers.
    pub(crate) is_kernels: bool,
    pub(crate) per_cpu: &'a PerCpu,
    pub(crate) buffer: &'a mut ReadBuffer,
    pub(crate) above: &'a mut Above,
}

impl CgroupSignals {
    /// Readers for the group at these places; nothing is opened yet.
    pub(crate) fn new(places: &Places, above: &mut Above) -> Self {
        let cpu = places.cpu.as_ref().map_err(|missing| *missing);
        let dir = cpu.map(Place::dir);
        Self {
            identity: dir.as_ref().ok().and_then(|dir| identity(dir)),
            dir,
            usage: usage_reader(places),
            recent: Box::new(RecentUse::NEW),
            doubt: Doubt::default(),
            quotas: cpu.map(|place| QuotaChain::new(place, above)),
            cpu_lists: cpu_lists(places, above),
            pressure: pressure_signals(places),
            limited_by: LimitedBy::Online,
            shared_cpus: SharedCpus::default(),
            cpus_busy: CpusBusy::default(),
            is_gone: false,
        }
    }

    /// Reads the same group at other places from now on; what is where it was goes on.
    pub(crate) fn follow(&mut self, before: &Places, now: &Places, above: &mut Above) {
        if before.cpuacct != now.cpuacct {
            self.usage = usage_reader(now);
            *self.recent = RecentUse::NEW;
            self.doubt = Doubt::default();
        }
        if before.cpuset != now.cpuset {
            if let Ok(lists) = &self.cpu_lists {
                lists.end(above);
            }
            self.cpu_lists = cpu_lists(now, above);
        }
        if before.unified != now.unified {
            self.pressure = pressure_signals(now);
        }
    }

    /// What held the number of CPUs down at the last sample.
    pub(crate) fn limiter(&self) -> Limiter<'_> {
        match (self.limited_by, &self.quotas) {
            (LimitedBy::Quota { level }, Ok(quotas)) => {
                Limiter::Quota(quotas.path_of(level).unwrap_or(Path::new("")))
            }
            (LimitedBy::CpuSet, _) => Limiter::CpuSet,
            (LimitedBy::Online | LimitedBy::Quota { .. }, _) => Limiter::Online,
        }
    }

    /// How busy the CPUs were that it may run on.
    pub(crate) fn cpus_busy(&self) -> CpusBusy {
        self.cpus_busy
    }

    /// Whether the last sample found the group's directory gone, or another in its place.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Gives back what it has in common with other groups.
    pub(crate) fn end(&self, above: &mut Above) {
        if let Ok(quotas) = &self.quotas {
            quotas.end(above);
        }
        if let Ok(lists) = &self.cpu_lists {
            lists.end(above);
        }
    }

    /// Takes one sample of every signal of the group, whose processes allow themselves these CPUs.
    pub(crate) fn sample(&mut self, means: &mut Means<'_>, affinity: &CpuSet, out: &mut Readings) {
        host_only(out);
        let usage = self.sample_usage(means);
        self.is_gone = self.may_be_gone() && !self.is_there();
        if self.is_gone {
            group_missing(
                Missing {
                    source: "cgroup",
                    fault: NoValue::Os(libc::ENOENT),
                },
                out,
            );
            return;
        }
        let chain = match &self.quotas {
            Ok(quotas) => quotas.sample(means.now_ns, means.buffer, means.above),
            Err(missing) => Err(*missing),
        };
        put_throttling(chain, out);
        let period_us = chain.ok().and_then(|chain| chain.tightest);
        let period_us = period_us.map(|(quota, _level)| quota.period_us);
        let usage = self.recent.take(means.now_ns, usage, period_us);
        let mut allowed = CpuSet::EMPTY;
        let known = self.allowed(affinity, means, &mut allowed);
        let cpus = known.and_then(|()| self.effective_cpus(chain, &allowed, means.online));
        let cpus = cpus.and_then(|cpus| self.believed(cpus, usage, means));
        out.set(SignalId::EffectiveCpus, cpus);
        put_usage(usage, cpus, out);
        self.cpus_busy = known.map_or(CpusBusy::Unknown, |()| {
            let shared = &mut self.shared_cpus;
            let busy = shared.take(&allowed, means.online, means.per_cpu, out);
            let is_told = means.is_kernels || busy == CpusBusy::AsHost;
            if is_told { busy } else { CpusBusy::Unknown }
        });
        match &mut self.pressure {
            Ok(pressure) => pressure.sample(means.now_ns, means.buffer, out),
            Err(missing) => pressure::all_missing(*missing, out),
        }
    }

    fn sample_usage(&mut self, means: &mut Means<'_>) -> Usage {
        let at = Moment {
            now_ns: means.now_ns,
            cpus: means.online.count(),
        };
        match &mut self.usage {
            Ok(usage) => usage.sample(at, means.buffer),
            Err(missing) => Usage::missing(*missing),
        }
    }

    /// Whether the files leave room for doubt: those of a removed group cannot be read, and those of
    /// one that was made anew under its name are opened anew.
    fn may_be_gone(&self) -> bool {
        self.usage
            .as_ref()
            .map_or(true, UsageReader::is_opened_anew)
    }

    fn is_there(&self) -> bool {
        let Ok(dir) = &self.dir else { return true };
        self.identity.is_some() && identity(dir) == self.identity
    }

    /// The CPUs, unless more are in use than that: what was read of them is then wrong. Run time that was saved up is
    /// the one way to use more for a while.
    fn believed(&mut self, cpus: f64, usage: Usage, means: &mut Means<'_>) -> Result<f64, Missing> {
        let Ok(used) = usage.total else {
            self.doubt.miss(means.now_ns);
            return Ok(cpus);
        };
        let is_exceeded = self.doubt.take(means.now_ns, used, cpus);
        let may_burst = |quotas: &QuotaChain| quotas.may_burst(means.buffer, means.above);
        if is_exceeded && !self.quotas.as_ref().is_ok_and(may_burst) {
            return Err(Missing {
                source: "cpu",
                fault: NoValue::OverCpus,
            });
        }
        Ok(cpus)
    }

    /// The CPUs that may be run on: by the cpuset, and by what the processes allow themselves. Both are by the kernel's
    /// own numbers. Those of a `/proc/stat` that something else fills may be others: of them the number alone counts.
    fn allowed(
        &self,
        affinity: &CpuSet,
        means: &mut Means<'_>,
        allowed: &mut CpuSet,
    ) -> Result<(), Missing> {
        *allowed = *means.online;
        let is_listed = match &self.cpu_lists {
            Ok(lists) => lists.sample(means.buffer, means.above, allowed)?,
            // Without a cpuset hierarchy in sight nothing narrows the online CPUs.
            Err(missing) if matches!(missing.fault, NoValue::NotMounted | NoValue::OutOfSight) => {
                false
            }
            // One that is not proved to be its own narrows them, and its processes tell how.
            Err(_unproved) if !affinity.is_empty() => false,
            Err(missing) => return Err(*missing),
        };
        if is_listed || means.is_kernels {
            // Processes that have just been moved may still tell of the CPUs they had before.
            if allowed.meets(affinity) {
                allowed.keep_only(affinity);
            }
        } else if (1..allowed.count()).contains(&affinity.count()) {
            *allowed = *affinity;
        }
        Ok(())
    }

    /// The least of the tightest quota and the number of CPUs that may be run on.
    fn effective_cpus(
        &mut self,
        chain: Result<ChainSample, Missing>,
        allowed: &CpuSet,
        online: &CpuSet,
    ) -> Result<f64, Missing> {
        let count = allowed.count();
        let narrowed = LimitedBy::CpuSet;
        self.limited_by = if count < online.count() {
            narrowed
        } else {
            LimitedBy::Online
        };
        match chain?.tightest {
            Some((quota, level)) if count == 0 || quota.cpus() < f64::from(count) => {
                self.limited_by = LimitedBy::Quota { level };
                Ok(quota.cpus())
            }
            _ if count == 0 => Err(Missing {
                source: "/proc/stat",
                fault: NoValue::NoField("cpu0"),
            }),
            _ => Ok(f64::from(count)),
        }
    }
}

fn usage_reader(places: &Places) -> Result<UsageReader, Missing> {
    let place = places.cpuacct.as_ref().map_err(|missing| *missing);
    place.map(UsageReader::new)
}

fn cpu_lists(places: &Places, above: &mut Above) -> Result<CpuListChain, Missing> {
    let place = places.cpuset.as_ref().map_err(|missing| *missing);
    place.map(|place| CpuListChain::new(place, above))
}

fn pressure_signals(places: &Places) -> Result<PressureSignals, Missing> {
    let place = places.unified.as_ref().map_err(|missing| *missing);
    let dir = place.map(Place::dir)?;
    let files = ["cpu.pressure", "memory.pressure", "io.pressure"];
    let files = files.map(|name| (name, dir.join(name)));
    Ok(PressureSignals::new(files))
}

fn put_throttling(chain: Result<ChainSample, Missing>, out: &mut Readings) {
    let throttling = chain.and_then(|chain| chain.throttling);
    out.set(SignalId::Throttle, throttling.map(|share| share.of_periods));
    out.set(
        SignalId::ThrottledTime,
        throttling.map(|share| share.of_time),
    );
    let burst = throttling.and_then(|share| {
        share.bursts.map_err(|fault| Missing {
            source: "cpu.stat",
            fault,
        })
    });
    out.set(SignalId::Burst, burst);
}

fn put_usage(usage: Usage, cpus: Result<f64, Missing>, out: &mut Readings) {
    let share = |used: Result<f64, Missing>| Ok(used? / cpus?);
    out.set(SignalId::UsedCpus, usage.total);
    out.set(SignalId::Cpu, share(usage.total));
    out.set(SignalId::CpuUser, share(usage.user));
    out.set(SignalId::CpuSystem, share(usage.system));
}

/// Signals of the host alone.
fn host_only(out: &mut Readings) {
    let of = |source| {
        Err(Missing {
            source,
            fault: NoValue::HostOnly,
        })
    };
    for id in [SignalId::Load1, SignalId::Load5, SignalId::Load15] {
        out.set(id, of("/proc/loadavg"));
    }
    out.set(SignalId::Steal, of("/proc/stat"));
    out.set(SignalId::TickLate, of("sampler"));
}

fn group_missing(missing: Missing, out: &mut Readings) {
    put_throttling(Err(missing), out);
    out.set(SignalId::EffectiveCpus, Err(missing));
    put_usage(Usage::missing(missing), Err(missing), out);
    pressure::all_missing(missing, out);
}
