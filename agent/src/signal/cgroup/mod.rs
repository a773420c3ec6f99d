//! The signals of one control group, on v1, v2 and both at once.

mod cpu_list;
mod quota;
mod throttle;
mod usage;

#[cfg(test)]
mod captures;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tidegate_abi::signal::SignalId;

use self::cpu_list::CpuListChain;
use self::quota::{ChainSample, QuotaChain};
use self::usage::{Moment, Usage, UsageReader};
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
    /// The list of allowed CPUs.
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
    is_gone: bool,
}

impl CgroupSignals {
    /// Readers for the group at these places; nothing is opened yet.
    pub(crate) fn new(places: &Places) -> Self {
        let at = |place: &Result<_, Missing>| place.clone();
        let pressure_files = |dir: PathBuf| {
            ["cpu.pressure", "memory.pressure", "io.pressure"].map(|name| (name, dir.join(name)))
        };
        Self {
            dir: at(&places.cpu).map(|place| place.dir()),
            usage: at(&places.cpuacct).map(|place| UsageReader::new(&place)),
            quotas: at(&places.cpu).map(|place| QuotaChain::new(&place)),
            cpu_lists: at(&places.cpuset).map(|place| CpuListChain::new(&place)),
            pressure: at(&places.unified)
                .map(|place| PressureSignals::new(pressure_files(place.dir()))),
            limited_by: LimitedBy::Online,
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

    /// Whether the group's directory was not there at the last sample.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Takes one sample of every signal of the group. `online` without CPUs is "not known".
    pub(crate) fn sample(
        &mut self,
        now_ns: u64,
        online: &CpuSet,
        buffer: &mut ReadBuffer,
        out: &mut Readings,
    ) {
        host_only(out);
        self.is_gone = self.dir.as_ref().is_ok_and(|dir| !dir.is_dir());
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
        let chain = match &mut self.quotas {
            Ok(quotas) => quotas.sample(now_ns, buffer),
            Err(missing) => Err(*missing),
        };
        put_throttling(chain, out);
        let cpus = self.effective_cpus(chain, online, buffer);
        out.set(SignalId::EffectiveCpus, cpus);
        let usage = match &mut self.usage {
            Ok(usage) => usage.sample(
                Moment {
                    now_ns,
                    cpus: online.count(),
                },
                buffer,
            ),
            Err(missing) => Usage {
                total: Err(*missing),
                user: Err(*missing),
                system: Err(*missing),
            },
        };
        put_usage(usage, cpus, out);
        match &mut self.pressure {
            Ok(pressure) => pressure.sample(now_ns, buffer, out),
            Err(missing) => pressure::all_missing(*missing, out),
        }
    }

    /// The least of the tightest quota and the number of CPUs that may be run on.
    fn effective_cpus(
        &mut self,
        chain: Result<ChainSample, Missing>,
        online: &CpuSet,
        buffer: &mut ReadBuffer,
    ) -> Result<f64, Missing> {
        let allowed = match &mut self.cpu_lists {
            Ok(lists) => lists.sample(online, buffer)?,
            // Without a cpuset hierarchy in sight nothing narrows the online CPUs.
            Err(_no_cpuset) => *online,
        };
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
    let usage = Usage {
        total: Err(missing),
        user: Err(missing),
        system: Err(missing),
    };
    put_usage(usage, Err(missing), out);
    pressure::all_missing(missing, out);
}
