//! The signals of one control group, on v1, v2 and both at once.

mod above;
mod cpu_list;
mod quota;
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
use self::quota::{ChainSample, QuotaChain};
pub use self::shared_cpus::CpusBusy;
use self::shared_cpus::SharedCpus;
use self::usage::{Moment, Usage, UsageReader};
use super::host::PerCpu;
use super::kept_file::ReadBuffer;
use super::layout::Places;
use super::parse::cpu_set::CpuSet;
use super::pressure::{self, PressureSignals};
use super::reading::{Fault, Missing, Readings};

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
    pub(crate) per_cpu: &'a PerCpu,
    pub(crate) buffer: &'a mut ReadBuffer,
    pub(crate) above: &'a mut Above,
}

impl CgroupSignals {
    /// Readers for the group at these places; nothing is opened yet.
    pub(crate) fn new(places: &Places, above: &mut Above) -> Self {
        let at = |place: &Result<_, Missing>| place.clone();
        let pressure_files = |dir: PathBuf| {
            ["cpu.pressure", "memory.pressure", "io.pressure"].map(|name| (name, dir.join(name)))
        };
        let dir = at(&places.cpu).map(|place| place.dir());
        Self {
            identity: dir.as_ref().ok().and_then(|dir| identity(dir)),
            dir,
            usage: at(&places.cpuacct).map(|place| UsageReader::new(&place)),
            quotas: at(&places.cpu).map(|place| QuotaChain::new(&place, above)),
            cpu_lists: at(&places.cpuset).map(|place| CpuListChain::new(&place, above)),
            pressure: at(&places.unified)
                .map(|place| PressureSignals::new(pressure_files(place.dir()))),
            limited_by: LimitedBy::Online,
            shared_cpus: SharedCpus::default(),
            cpus_busy: CpusBusy::default(),
            is_gone: false,
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
                    fault: Fault::Os(libc::ENOENT),
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
        let allowed = self.allowed(affinity, means);
        let cpus = allowed.and_then(|allowed| self.effective_cpus(chain, &allowed, means.online));
        out.set(SignalId::EffectiveCpus, cpus);
        put_usage(usage, cpus, out);
        self.cpus_busy = allowed.map_or(CpusBusy::Unknown, |allowed| {
            let shared = &mut self.shared_cpus;
            shared.take(&allowed, means.online, means.per_cpu, out)
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

    /// The CPUs that may be run on: by the cpuset, and by what the processes allow themselves.
    fn allowed(&self, affinity: &CpuSet, means: &mut Means<'_>) -> Result<CpuSet, Missing> {
        let online = means.online;
        let mut allowed = match &self.cpu_lists {
            Ok(lists) => lists.sample(online, means.buffer, means.above)?,
            // Without a cpuset hierarchy in sight nothing narrows the online CPUs.
            Err(_no_cpuset) => *online,
        };
        // Processes that have just been moved may still tell of the CPUs they had before.
        if allowed.meets(affinity) {
            allowed.keep_only(affinity);
        }
        Ok(allowed)
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
            Some((quota, level)) if count == 0 || quota < f64::from(count) => {
                self.limited_by = LimitedBy::Quota { level };
                Ok(quota)
            }
            _ if count == 0 => Err(Missing {
                source: "/proc/stat",
                fault: Fault::NoField("cpu0"),
            }),
            _ => Ok(f64::from(count)),
        }
    }
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
            fault: Fault::HostOnly,
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
