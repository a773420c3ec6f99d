//! What the CPUs did between two samples of `/proc/stat`.

use super::super::meter::to_f64;
use super::super::parse::proc_stat::CpuTimes;
use crate::procfs::NoValue;

/// Shares of the CPU time between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    /// All that was not idle; time that the hypervisor took is not idle.
    pub(super) busy: f64,
    /// Busy less steal: what the host's CPUs worked.
    pub(super) used: f64,
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) steal: Result<f64, NoValue>,
}

impl Shares {
    /// A part that went back (the kernel's idle times can) discards the sample.
    pub(super) fn between(last: CpuTimes, now: CpuTimes) -> Result<Self, NoValue> {
        let grown = |now: u64, last: u64| now.checked_sub(last).ok_or(NoValue::WentBack);
        let total = match grown(now.total, last.total)? {
            0 => return Err(NoValue::NoTimePassed),
            total => to_f64(total),
        };
        let idle = to_f64(grown(now.idle, last.idle)?) / total;
        let stolen = match (now.steal, last.steal) {
            (Some(now), Some(last)) => grown(now, last).map(|ticks| to_f64(ticks) / total),
            _ => Err(NoValue::NoField("steal")),
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
