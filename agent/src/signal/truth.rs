//! The table of truth: which file tells what, on which layout. One row, one quantity.
//!
//! | quantity | cgroup v2 | cgroup v1 | host |
//! |---|---|---|---|
//! | CPU time used | `cpu.stat` `usage_usec` | cpuacct: `cpuacct.usage` (ns) | `/proc/stat` cpu (ticks) |
//! | user, system | `cpu.stat` `user_usec`, `system_usec` | cpuacct: `cpuacct.usage_user`, `cpuacct.usage_sys` (ns) | `/proc/stat` cpu |
//! | steal | – | – | `/proc/stat` cpu |
//! | quota | `cpu.max` of every group up to the mount | cpu: `cpu.cfs_quota_us`, `cpu.cfs_period_us`, likewise | – |
//! | CPU set | `cpuset.cpus.effective`, else `cpuset.cpus`, likewise | cpuset: `cpuset.effective_cpus`, else `cpuset.cpus` | – |
//! | – of its processes | `/proc/PID/status` `Cpus_allowed_list` | likewise | – |
//! | online CPUs, use of each | – | – | `/proc/stat` cpu0, cpu1, … |
//! | throttling | `cpu.stat` `nr_periods`, `nr_throttled`, `throttled_usec` | cpu: `cpu.stat`, `throttled_time` (ns) | – |
//! | bursts | `cpu.stat` `nr_bursts` | cpu: `cpu.stat` `nr_bursts` | – |
//! | pressure | `cpu.pressure`, `memory.pressure`, `io.pressure` | – (of v2, if that sets the same group apart) | `/proc/pressure/*` |
//! | load, threads | – (threads are counted) | – | `/proc/loadavg` |
//! | runnable, blocked | states in `/proc/PID/task/TID/stat` | likewise | `/proc/stat` `procs_running`, `procs_blocked` |
//! | run-queue wait | `/proc/PID/task/TID/schedstat` | likewise | `/proc/schedstat` cpu0, cpu1, … |
//! | – its distribution, run-queue length, preemptions | programs in the kernel (`ebpf`), which also tell the wait where they run | likewise | likewise |
//! | – pauses of JVMs | probes of the JVM's library (`ebpf`) | likewise | – |
//! | context switches | `/proc/PID/task/TID/schedstat` | likewise | `/proc/stat` ctxt |
//! | collectors' share | names and CPU time of `/proc/PID/task/TID` | likewise | – |
//! | JVM: collections, heap | `hsperfdata` in the JVM's own `/tmp` | likewise | – |
//! | accept queues | `sock_diag` (`inet_diag`) of the sockets that services show | likewise | likewise |
//! | lateness of the ticks | – | – | the sampler's thread itself |
//!
//! Traps that the table stands for:
//! * v1 tells ns where v2 tells µs, and `cpu.stat` of v1 holds no use at all.
//! * cpu and cpuacct of v1 may be two hierarchies in which a process has two different paths.
//! * A v2 group without the cpu controller has a `cpu.stat` with use and without `nr_*`: that is "not
//!   measured", not "never throttled". The v1 root shows zeros; without a quota it is not read.
//! * `cpu.pressure` has no line `full` before kernel 5.13, and the host's is always 0: undefined.
//! * The top of a v2 mount has no `cpu.max`, unless it is the top of a namespace only.

use crate::procfs::parse::{field, sole_number};
use crate::procfs::{NoValue, Version};

impl Version {
    /// The column of the table.
    pub(crate) const fn truth(self) -> &'static Truth {
        match self {
            Self::V1 => &V1,
            Self::V2 => &V2,
        }
    }
}

/// Where one counter stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    /// Name of the file in the group's directory.
    pub(crate) file: &'static str,
    /// Field in it; `None` if the file holds one number.
    key: Option<&'static str>,
    /// What one unit of it is worth: ns of time, or 1 for a number of events.
    unit: u64,
}

impl Counter {
    const fn keyed(file: &'static str, key: &'static str, unit: u64) -> Self {
        Self {
            file,
            key: Some(key),
            unit,
        }
    }

    const fn sole(file: &'static str) -> Self {
        Self {
            file,
            key: None,
            unit: 1,
        }
    }

    /// The counter in ns or events, from the content of its file.
    ///
    /// # Errors
    /// A field that is missing, malformed, or too large for 64 bits of ns.
    pub(crate) fn read(self, bytes: &[u8]) -> Result<u64, NoValue> {
        let count = match self.key {
            Some(key) => field(bytes, key)?,
            None => sole_number(bytes, self.file)?,
        };
        count
            .checked_mul(self.unit)
            .ok_or(NoValue::Malformed(self.key.unwrap_or(self.file)))
    }
}

/// One column: the files of one generation.
#[derive(Debug)]
pub(crate) struct Truth {
    /// CPU time used, ns.
    pub(crate) usage: Counter,
    /// Of it user code, ns.
    pub(crate) user: Counter,
    /// Of it kernel code, ns.
    pub(crate) system: Counter,
    /// Quota periods in which the group had something to run.
    pub(crate) periods: Counter,
    /// Of them those in which it ran out of quota.
    pub(crate) throttled: Counter,
    /// Time for which its run queues were held, ns, summed over CPUs.
    pub(crate) throttled_time: Counter,
    /// Periods in which it used saved-up quota.
    pub(crate) bursts: Counter,
    /// Files with the list of CPUs, the best first.
    pub(crate) cpu_lists: [&'static str; 2],
}

const NS_PER_US: u64 = 1000;

const V1: Truth = Truth {
    usage: Counter::sole("cpuacct.usage"),
    user: Counter::sole("cpuacct.usage_user"),
    system: Counter::sole("cpuacct.usage_sys"),
    periods: Counter::keyed("cpu.stat", "nr_periods", 1),
    throttled: Counter::keyed("cpu.stat", "nr_throttled", 1),
    throttled_time: Counter::keyed("cpu.stat", "throttled_time", 1),
    bursts: Counter::keyed("cpu.stat", "nr_bursts", 1),
    cpu_lists: ["cpuset.effective_cpus", "cpuset.cpus"],
};

const V2: Truth = Truth {
    usage: Counter::keyed("cpu.stat", "usage_usec", NS_PER_US),
    user: Counter::keyed("cpu.stat", "user_usec", NS_PER_US),
    system: Counter::keyed("cpu.stat", "system_usec", NS_PER_US),
    periods: Counter::keyed("cpu.stat", "nr_periods", 1),
    throttled: Counter::keyed("cpu.stat", "nr_throttled", 1),
    throttled_time: Counter::keyed("cpu.stat", "throttled_usec", NS_PER_US),
    bursts: Counter::keyed("cpu.stat", "nr_bursts", 1),
    cpu_lists: ["cpuset.cpus.effective", "cpuset.cpus"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_tell_the_same_unit() {
        let v1 = b"nr_periods 33\nnr_throttled 31\nthrottled_time 1704000000\n";
        let v2 = b"usage_usec 7\nnr_periods 33\nnr_throttled 31\nthrottled_usec 1704000\n";
        let read = |version: Version, bytes: &[u8]| {
            let truth = version.truth();
            [truth.periods, truth.throttled, truth.throttled_time].map(|c| c.read(bytes).unwrap())
        };
        assert_eq!(read(Version::V1, v1), read(Version::V2, v2));
        assert_eq!(Version::V2.truth().usage.read(v2), Ok(7000));
    }

    #[test]
    fn a_number_beyond_64_bits_of_ns_is_malformed() {
        let text = format!("usage_usec {}\n", u64::MAX);
        let read = Version::V2.truth().usage.read(text.as_bytes());
        assert_eq!(read, Err(NoValue::Malformed("usage_usec")));
    }
}
