//! The word for a kind of reason, as a metric's label has it: few, and the same for ever.

use super::{Lack, NoValue};

impl NoValue {
    /// The kind of reason. Which field or file it is about is left out: labels are from a bounded set.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::NotSampled => "not_sampled",
            Self::FirstSample => "first_sample",
            Self::NoTimePassed => "no_time_passed",
            Self::WentBack => "went_back",
            Self::Implausible => "implausible",
            Self::Os(errno) => of_errno(errno),
            Self::Empty => "empty",
            Self::TooLarge => "too_large",
            Self::NoField(_) => "no_field",
            Self::Malformed(_) => "malformed",
            Self::TooFewPeriods => "too_few_periods",
            Self::NoQuota => "no_quota",
            Self::NoQuotaInSight => "no_quota_in_sight",
            Self::OverCpus => "over_cpus",
            Self::OtherProcesses => "other_processes",
            Self::MoreThanThreads => "more_than_threads",
            Self::NotTold => "not_told",
            Self::NotItsOwn => "not_its_own",
            Self::UnknownCollector => "unknown_collector",
            Self::CountsConcurrent => "counts_concurrent",
            Self::NoFullGc => "no_full_gc",
            Self::HiddenProcesses => "hidden_processes",
            Self::StillLooking => "still_looking",
            Self::NotMounted => "not_mounted",
            Self::OutOfSight => "out_of_sight",
            Self::NotSetApart => "not_set_apart",
            Self::Undefined => "undefined",
            Self::HostOnly => "host_only",
            Self::GroupOnly => "group_only",
            Self::NoCollector => "no_collector",
            Self::NoJvm => "no_jvm",
            Self::NoPerfData => "no_perf_data",
            Self::Idle => "idle",
            Self::Frozen => "frozen",
            Self::NoListener => "no_listener",
            Self::HiddenListener => "hidden_listener",
            Self::TooMany => "too_many",
            Self::Crowded => "crowded",
            Self::NotFinite => "not_finite",
            Self::NoTurn => "no_turn",
            Self::NoPause => "no_pause",
            Self::Kernel(lack) => of_lack(lack),
        }
    }
}

const fn of_errno(errno: i32) -> &'static str {
    match errno {
        libc::ENOENT | libc::ENOTDIR => "absent",
        libc::EACCES | libc::EPERM => "not_permitted",
        libc::EOPNOTSUPP => "not_supported",
        libc::ENODEV | libc::ESRCH | libc::ESTALE => "gone",
        _ => "refused",
    }
}

const fn of_lack(lack: Lack) -> &'static str {
    match lack {
        Lack::SwitchedOff => "programs_off",
        Lack::OtherFiles => "programs_other_files",
        Lack::Starting => "programs_starting",
        Lack::OldKernel => "programs_old_kernel",
        Lack::Capability => "programs_capability",
        Lack::LockedMemory => "programs_locked_memory",
        Lack::Lockdown => "programs_lockdown",
        Lack::NoTypes => "programs_no_types",
        Lack::NoTracefs => "programs_no_tracefs",
        Lack::Refused => "programs_refused",
        Lack::OverBudget => "programs_over_budget",
        Lack::NotOnThisRung => "programs_other_rung",
        Lack::NoSlot => "programs_no_slot",
        Lack::Unsampled => "programs_unsampled",
        Lack::Memory => "programs_memory",
        Lack::NoProbes => "programs_no_probes",
    }
}
