//! Why programs in the kernel do not tell a value.

use std::fmt;

/// Why something is not measured by programs, in one word of a bounded list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The operator does not want them.
    SwitchedOff,
    /// The agent reads a tree that stands for `/proc`, so what this kernel does is not its host's.
    OtherFiles,
    /// They are being loaded.
    Starting,
    /// A kernel from before 5.8.
    OldKernel,
    /// Not permitted to this process.
    Capability,
    /// Less locked memory is permitted than maps take, on a kernel where they count as such.
    LockedMemory,
    /// The kernel is locked down.
    Lockdown,
    /// The kernel does not describe its types, or lacks a field.
    NoTypes,
    /// Plain tracepoints are not in sight.
    NoTracefs,
    /// The kernel refused them, for a reason that the report has.
    Refused,
    /// The memory of the agent's group has no room for them.
    Memory,
    /// They cost more than the operator allows.
    OverBudget,
    /// The step in use does not tell this.
    NotOnThisRung,
    /// More groups than the maps have room for.
    NoSlot,
    /// Probes of a library are not permitted to this process.
    NoProbes,
    /// The run queues are not sampled: perf events are not permitted to this process.
    Unsampled,
}

impl Lack {
    /// What is wrong, in a few words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::SwitchedOff => "kernel programs are switched off",
            Self::OtherFiles => "other files stand for /proc or /sys/fs/cgroup",
            Self::Starting => "kernel programs are being loaded",
            Self::OldKernel => "kernel programs need Linux 5.8",
            Self::Capability => "kernel programs need CAP_BPF and CAP_PERFMON",
            Self::LockedMemory => {
                "maps of kernel programs take more locked memory than RLIMIT_MEMLOCK permits"
            }
            Self::Lockdown => "the kernel is locked down: it lets no program read its memory",
            Self::NoTypes => "the kernel does not describe its types",
            Self::NoTracefs => "tracefs is not mounted, so there are no plain tracepoints",
            Self::Refused => "the kernel refused the programs",
            Self::Memory => "the agent's group has no memory for kernel programs",
            Self::OverBudget => "kernel programs cost more than max_overhead",
            Self::NotOnThisRung => "the kernel programs in use do not tell it",
            Self::NoSlot => "more groups than kernel programs keep apart",
            Self::Unsampled => "perf_event_open was refused (kernel.perf_event_paranoid)",
            Self::NoProbes => {
                "this kernel lets only CAP_SYS_ADMIN probe the library of a JVM, since a probe at a wrong place breaks a process"
            }
        }
    }

    /// Whether other steps of the ladder, or the probes of JVMs, may do without it.
    pub(crate) const fn is_of_this_step(self) -> bool {
        matches!(self, Self::NoTypes | Self::NoTracefs | Self::Refused)
    }

    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::SwitchedOff => "set [ebpf] enabled = true",
            Self::OtherFiles => "leave out --proc-root and --cgroup-root",
            Self::Starting => "wait some seconds",
            Self::OldKernel => "a kernel from 5.8 on",
            Self::Capability => {
                "run the agent as root, or with CAP_BPF and CAP_PERFMON as its unit does"
            }
            Self::LockedMemory => {
                "LimitMEMLOCK=infinity in the agent's unit, as in the one that comes with it, or Linux 5.11"
            }
            Self::Lockdown => "boot without lockdown=confidentiality",
            Self::NoTypes => "a kernel with CONFIG_DEBUG_INFO_BTF",
            Self::NoTracefs => "mount -t tracefs nodev /sys/kernel/tracing",
            Self::Refused => "see the ladder of kernel programs in `tidegate doctor`",
            Self::Memory => {
                "raise the group's memory.max (MemoryMax of the unit) to 32 MiB or more"
            }
            Self::OverBudget => "raise [ebpf] max_overhead",
            Self::NotOnThisRung => "what the ladder of kernel programs in `tidegate doctor` lacks",
            Self::NoSlot => "watch fewer groups, or raise [pages] max_scopes",
            Self::Unsampled => "sysctl kernel.perf_event_paranoid=2, or run the agent as root",
            Self::NoProbes => {
                "run the agent as root, or add CAP_SYS_ADMIN to CapabilityBoundingSet and AmbientCapabilities of its unit"
            }
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
