//! Why a value is missing.

use std::fmt;
use std::io;

use super::Lack;

/// What went wrong with a source. Small and `Copy`, so that a tick allocates nothing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoValue {
    /// Nobody has sampled yet.
    NotSampled,
    /// A rate needs two samples and this was the first.
    FirstSample,
    /// Two samples with the same time, or a later one with an earlier time.
    NoTimePassed,
    /// A counter that only grows went back; this sample is discarded.
    WentBack,
    /// The counter grew by more than the CPUs can do in that time; this sample is discarded.
    Implausible,
    /// The operating system refused, with its errno.
    Os(i32),
    /// The file is there and holds nothing.
    Empty,
    /// The file is larger than any such file should be.
    TooLarge,
    /// The file has no such field.
    NoField(&'static str),
    /// The field does not hold what it should.
    Malformed(&'static str),
    /// Too few quota periods have passed to speak of a share.
    TooFewPeriods,
    /// No group from this one up to the top has a CPU quota.
    NoQuota,
    /// No group in sight has a CPU quota, and there are groups above that are not in sight.
    NoQuotaInSight,
    /// More CPUs are in use than were found: a limit was misread.
    OverCpus,
    /// The controller is mounted nowhere in sight.
    NotMounted,
    /// The path of the group is not visible below the mount.
    OutOfSight,
    /// The hierarchy does not set this group apart from others.
    NotSetApart,
    /// The hierarchies have different processes in the groups that should be one.
    OtherProcesses,
    /// More tasks than there are threads.
    MoreThanThreads,
    /// Zeros in place of what no running machine has zero of.
    NotTold,
    /// The kernel does not define this value here.
    Undefined,
    /// The quantity belongs to the host and is not told per group.
    HostOnly,
    /// The quantity belongs to a group and is not told of the host.
    GroupOnly,
    /// No thread of the group is known as a garbage collector's.
    NoCollector,
    /// No JVM was seen in the group.
    NoJvm,
    /// The JVM keeps no file with its counters.
    NoPerfData,
    /// The file is not the JVM's own, or cannot be proved to be.
    NotItsOwn,
    /// A collector of the JVM has a name that is not known, so what it counts is not known.
    UnknownCollector,
    /// The collector counts what it does beside the program as if it had stopped it.
    CountsConcurrent,
    /// The collector makes no full collection that stops the JVM.
    NoFullGc,
    /// No process of the group is in sight, and there are some.
    HiddenProcesses,
    /// There are so many threads that not all of them were looked at yet.
    StillLooking,
    /// The group did nothing that a share could be told of.
    Idle,
    /// The value has not moved while the machine did.
    Frozen,
    /// No service of the scope has shown its listening socket.
    NoListener,
    /// The listening socket is in no sight of the agent.
    HiddenListener,
    /// More groups than can be watched.
    TooMany,
    /// There is more of it than is looked at: processes and groups of a group, names in a directory.
    Crowded,
    /// The computed value is not a finite number.
    NotFinite,
    /// No task of the scope got a turn on a CPU.
    NoTurn,
    /// No JVM of the scope has been seen to pause: it has not, or has no probes.
    NoPause,
    /// Programs in the kernel tell it, and none does.
    Kernel(Lack),
}

impl NoValue {
    /// The fault of a failed system call.
    pub fn of(error: &io::Error) -> Self {
        Self::Os(error.raw_os_error().unwrap_or(0))
    }

    /// Whether the file or directory is simply not there.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Os(libc::ENOENT | libc::ENOTDIR))
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSampled => f.write_str("not sampled yet"),
            Self::FirstSample => f.write_str("first sample; a rate needs two"),
            Self::NoTimePassed => f.write_str("no time passed since the last sample"),
            Self::WentBack => f.write_str("the counter went back; sample discarded"),
            Self::Implausible => f.write_str("grew by more than the CPUs can do; sample discarded"),
            Self::Os(errno) => write!(f, "{}", io::Error::from_raw_os_error(*errno)),
            Self::Empty => f.write_str("is empty"),
            Self::TooLarge => f.write_str("is larger than 4 MiB"),
            Self::NoField(name) => write!(f, "has no field {name}"),
            Self::Malformed(name) => write!(f, "{name} does not hold what it should"),
            Self::TooFewPeriods => f.write_str("too few quota periods passed"),
            Self::NoQuota => f.write_str("no CPU quota is set here or above"),
            Self::NoQuotaInSight => {
                f.write_str("no CPU quota is visible, and the groups above the mount are not")
            }
            Self::OverCpus => {
                f.write_str("more CPUs are in use than the limits in sight allow: one is misread")
            }
            Self::OtherProcesses => {
                f.write_str("holds other processes than the same group of the cpu controller")
            }
            Self::MoreThanThreads => f.write_str("counts more tasks than there are threads"),
            Self::NotTold => f.write_str("holds zeros: this kernel or sandbox does not tell it"),
            Self::NotItsOwn => f.write_str("the file is not proved to be this JVM's own"),
            Self::UnknownCollector => f.write_str("the JVM's collector has an unknown name"),
            Self::CountsConcurrent => {
                f.write_str("the JVM's collector counts work that stops nobody as collections")
            }
            Self::NoFullGc => {
                f.write_str("the JVM's collector makes no full collection that stops it")
            }
            Self::HiddenProcesses => f.write_str(
                "its processes are hidden: /proc is mounted with hidepid, or is that of another pid namespace",
            ),
            Self::StillLooking => f.write_str("first look at all its threads: not finished yet"),
            Self::NotMounted => f.write_str("the controller is not mounted in sight"),
            Self::OutOfSight => f.write_str("the group is not visible below the mount"),
            Self::NotSetApart => f.write_str("the hierarchy does not set this group apart"),
            Self::Undefined => f.write_str("the kernel does not define it here"),
            Self::HostOnly => f.write_str("belongs to the host, not to a group"),
            Self::GroupOnly => f.write_str("belongs to a group, not to the host"),
            Self::NoCollector => f.write_str("no thread is known as a garbage collector's"),
            Self::NoJvm => f.write_str("no JVM runs here"),
            Self::NoPerfData => f.write_str(
                "the JVM keeps none; it was started with -XX:-UsePerfData, or is no HotSpot",
            ),
            Self::Idle => f.write_str("no CPU time was used"),
            Self::Frozen => f.write_str("has not moved while the machine did"),
            Self::NoListener => f.write_str("no service has shown its listening socket"),
            Self::HiddenListener => f.write_str(
                "a listening socket is closed, or in another network namespace than the agent",
            ),
            Self::TooMany => f.write_str("as many groups as fit are watched already"),
            Self::Crowded => f.write_str("holds more than is looked at"),
            Self::NotFinite => f.write_str("does not give a finite number"),
            Self::NoTurn => f.write_str("no task got a turn on a CPU"),
            Self::NoPause => f.write_str("no JVM was seen to pause"),
            Self::Kernel(lack) => lack.fmt(f),
        }
    }
}

/// Why a value is missing: the source, by the name it has in the table of sources, and its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// File or controller that should have told it.
    pub source: &'static str,
    /// What is wrong with it.
    pub fault: NoValue,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.fault)
    }
}

impl std::error::Error for Missing {}

/// Gives a fault the name of its source.
pub(crate) trait NamedSource<T> {
    /// The same result, with the source named.
    fn named(self, source: &'static str) -> Result<T, Missing>;
}

impl<T> NamedSource<T> for Result<T, NoValue> {
    fn named(self, source: &'static str) -> Result<T, Missing> {
        self.map_err(|fault| Missing { source, fault })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_file_and_the_fault() {
        let text = |fault| {
            Missing {
                source: "cpu.stat",
                fault,
            }
            .to_string()
        };
        assert_eq!(
            text(NoValue::NoField("nr_periods")),
            "cpu.stat: has no field nr_periods"
        );
        assert!(
            text(NoValue::Os(libc::EOPNOTSUPP)).starts_with("cpu.stat: Operation not supported")
        );
    }
}
