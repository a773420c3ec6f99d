//! What would make a missing value available.

use tidegate_abi::signal::SignalId;

use crate::procfs::{Missing, NoValue};

impl Missing {
    /// What to do to have this signal, in a few words.
    pub fn remedy(self, id: SignalId) -> &'static str {
        match self.fault {
            NoValue::NotSampled
            | NoValue::FirstSample
            | NoValue::NoTimePassed
            | NoValue::WentBack
            | NoValue::Implausible
            | NoValue::Frozen
            | NoValue::NotFinite => "wait for the next sample",
            NoValue::TooFewPeriods | NoValue::Idle => "wait until the group has work to do",
            NoValue::Os(errno) => of_errno(errno, id),
            NoValue::Empty | NoValue::TooLarge | NoValue::NoField(_) | NoValue::Malformed(_) => {
                "a kernel, or a sandbox, that fills this file as Linux does"
            }
            NoValue::NoQuota => {
                "set a quota, such as CPUQuota= of the unit; without one nothing throttles"
            }
            NoValue::NoQuotaInSight => {
                "nothing, if the container has none; else run the agent outside of it"
            }
            NoValue::OverCpus => "declare the CPUs of the group: cpus in its [[scope]]",
            NoValue::OtherProcesses => {
                "let its processes join the same group in the hierarchy of every controller"
            }
            NoValue::MoreThanThreads => "nothing: the kernel counts wrong",
            NoValue::NotTold => "nothing: this kernel or sandbox does not tell it",
            NoValue::NotItsOwn => "give each container a /tmp of its own",
            NoValue::UnknownCollector => "an agent that knows this collector",
            NoValue::CountsConcurrent | NoValue::NoFullGc => {
                "nothing: this collector does not tell it"
            }
            NoValue::HiddenProcesses => {
                "run the agent as root, or mount /proc without hidepid or with gid= of a group that the agent is in"
            }
            NoValue::StillLooking => "nothing: it comes when all threads were looked at",
            NoValue::NotMounted => "mount the controller where this process sees it",
            NoValue::OutOfSight => "run outside the container, or mount the host's cgroups into it",
            NoValue::NotSetApart => {
                "a host with cgroup v2 alone, or the same group in the unified hierarchy too"
            }
            NoValue::Undefined => "cannot be had on this kernel",
            NoValue::HostOnly => "look at the scope host",
            NoValue::GroupOnly => "look at the scope of a group",
            NoValue::NoCollector | NoValue::NoJvm => "start a JVM in the group",
            NoValue::NoPerfData => "start the JVM without -XX:-UsePerfData; other JVMs keep none",
            NoValue::NoListener => "let the service call watch_listener of the client",
            NoValue::HiddenListener => {
                "run the agent in the network namespace of the service; in flight alone counts until then"
            }
            NoValue::TooMany => "watch fewer groups",
            NoValue::Crowded => {
                "watch the groups below it each by itself, or keep fewer files in /tmp of the JVM"
            }
            NoValue::NoTurn => "wait until the scope has work to do",
            NoValue::NoPause => "wait for a pause, or start a JVM with DTrace probes",
            NoValue::Kernel(lack) => lack.remedy(),
        }
    }
}

fn of_errno(errno: i32, id: SignalId) -> &'static str {
    let pressure = matches!(
        id,
        SignalId::PsiCpu
            | SignalId::PsiCpuFull
            | SignalId::PsiMemory
            | SignalId::PsiMemoryFull
            | SignalId::PsiIo
            | SignalId::PsiIoFull
    );
    match errno {
        libc::EACCES | libc::EPERM => "run the agent as root, or let it read this file",
        libc::EOPNOTSUPP if pressure => "boot the kernel with psi=1",
        libc::ENOENT if pressure => "a kernel with CONFIG_PSI; for a group, cgroup v2 too",
        libc::ENOENT if matches!(id, SignalId::RunqueueWait | SignalId::ContextSwitches) => {
            "a kernel with CONFIG_SCHEDSTATS, or CONFIG_SCHED_INFO for groups"
        }
        libc::ENOENT => "a kernel that has this file",
        libc::ESRCH | libc::ENODEV => "none: the group or its process has just gone",
        _ => "see the reason; the kernel refused the file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switched_off_and_a_missing_psi_have_different_remedies() {
        let remedy = |errno| {
            let missing = Missing {
                source: "/proc/pressure/cpu",
                fault: NoValue::Os(errno),
            };
            missing.remedy(SignalId::PsiCpu)
        };
        assert_eq!(remedy(libc::EOPNOTSUPP), "boot the kernel with psi=1");
        assert!(remedy(libc::ENOENT).contains("CONFIG_PSI"));
        assert!(remedy(libc::EACCES).contains("root"));
    }
}
