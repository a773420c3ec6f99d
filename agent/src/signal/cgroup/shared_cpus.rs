//! How busy the CPUs are that a group may run on, where it may not run on all of them.

use tidegate_abi::signal::SignalId;

use super::super::host::PerCpu;
use super::super::parse::cpu_set::CpuSet;
use super::super::reading::Readings;

/// Weight of the newest sample in the mean use of others. The kernel counts the time of a CPU in steps that
/// are a tenth of a tick.
const WEIGHT: f64 = 0.3;

/// Use of others that may be no more than the error of the counts, share of the CPUs.
const LEAST: f64 = 0.1;

/// Busy share of the CPUs that a group may run on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CpusBusy {
    /// It may run on every CPU: that of the host.
    #[default]
    AsHost,
    /// It may run on some CPUs, and what these do is not known.
    Unknown,
    /// It may run on some CPUs, which are busy to this share.
    Share(f64),
}

/// What others use of a group's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SharedCpus {
    others: Option<f64>,
}

impl SharedCpus {
    /// Takes a sample: the CPUs that the group may run on, of those online, and what it used itself.
    pub(crate) fn take(
        &mut self,
        allowed: &CpuSet,
        online: &CpuSet,
        cpus: &PerCpu,
        readings: &Readings,
    ) -> CpusBusy {
        if allowed.count() >= online.count() {
            self.others = None;
            return CpusBusy::AsHost;
        }
        let used = readings.value(SignalId::UsedCpus);
        let own = used.map(|used| used / f64::from(allowed.count().max(1)));
        let (Some(own), Some(busy)) = (own, cpus.busy(allowed)) else {
            return CpusBusy::Unknown;
        };
        let now = busy - own;
        let others = self.others.map_or(now, |mean| mean + WEIGHT * (now - mean));
        self.others = Some(others);
        let others = if others < LEAST { 0.0 } else { others };
        CpusBusy::Share((own + others).min(1.0))
    }
}
