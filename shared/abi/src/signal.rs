//! The table of signals: one row for each measured quantity.

use crate::decision::wire_enum;

wire_enum! {
    /// Which quantity of a scope.
    SignalId {
        /// Share of the effective CPUs in use.
        Cpu = 0, "cpu";
        /// Share of the quota periods that were throttled.
        Throttle = 1, "throttle";
        /// Share of the time that was throttled.
        ThrottledTime = 2, "throttled_time";
        /// One-minute load average.
        Load1 = 3, "load1";
        /// Tasks that run or wait for a CPU.
        Runnable = 4, "runnable";
        /// Share of the time in which some task waited for a CPU (10 s average of the kernel).
        PsiCpu = 5, "psi_cpu";
        /// Share of the CPU time that the hypervisor took.
        Steal = 6, "steal";
        /// CPUs that the scope may use.
        EffectiveCpus = 7, "effective_cpus";
    }
}

/// Unit of a signal's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share; 1 is the whole.
    Ratio,
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The word used in JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Count => "count",
            Self::Seconds => "seconds",
        }
    }
}

impl SignalId {
    /// Unit of the value.
    pub const fn unit(self) -> Unit {
        match self {
            Self::Cpu | Self::Throttle | Self::ThrottledTime | Self::PsiCpu | Self::Steal => {
                Unit::Ratio
            }
            Self::Load1 | Self::Runnable | Self::EffectiveCpus => Unit::Count,
        }
    }
}
