//! Who runs on which CPU, and how busy a CPU is.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tidegate_limits::number::double;

/// The first two CPUs that this process may use: the service's and everybody else's.
///
/// # Errors
/// There are fewer than two.
pub(crate) fn two() -> io::Result<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    match (cpus.next(), cpus.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err(io::Error::other(
            "the lab needs two CPUs: one for the service, one for the load; this process may use one",
        )),
    }
}

/// Keeps the calling thread, and those that it starts from now on, on one CPU.
///
/// # Errors
/// This process may not use it.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// CPU time of the calling thread.
pub(crate) fn of_thread() -> Duration {
    time(ClockId::ThreadCPUTime)
}

/// CPU time of this process.
pub(crate) fn of_process() -> Duration {
    time(ClockId::ProcessCPUTime)
}

fn time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or(Duration::ZERO)
}

/// Uses up CPU time of the calling thread.
pub(crate) fn burn(time: Duration) {
    let end = of_thread().saturating_add(time);
    while of_thread() < end {
        std::hint::spin_loop();
    }
}

/// What one CPU has done since the machine started, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    idle: u64,
    all: u64,
}

impl Usage {
    /// Reads it; nothing where the kernel does not say.
    pub(crate) fn of(cpu: usize) -> Self {
        fs::read_to_string("/proc/stat").map_or_else(
            |_unreadable| Self::default(),
            |stat| Self::parse(&stat, cpu),
        )
    }

    fn parse(stat: &str, cpu: usize) -> Self {
        let name = format!("cpu{cpu}");
        let fields = stat
            .lines()
            .find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '))
            .unwrap_or_default();
        let ticks: Vec<u64> = fields
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .take(8)
            .collect();
        // user nice system idle iowait irq softirq steal
        let idle = ticks.get(3).copied().unwrap_or(0) + ticks.get(4).copied().unwrap_or(0);
        Self {
            idle,
            all: ticks.iter().sum(),
        }
    }

    /// Busy share since an earlier reading.
    pub(crate) fn busy_since(&self, before: &Self) -> f64 {
        let all = double(self.all.saturating_sub(before.all)).max(1.0);
        1.0 - double(self.idle.saturating_sub(before.idle)) / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_of_a_cpu_is_all_but_idle_and_waiting_for_disks() {
        let stat =
            |cpu1: &str| format!("cpu  1 1 1 1\ncpu0 9 9 9 9 9 9 9 9\ncpu1 {cpu1}\ncpu10 0\n");
        let before = Usage::parse(&stat("10 0 10 70 10 0 0 0 0 0"), 1);
        let after = Usage::parse(&stat("40 0 20 100 20 5 5 10 7 0"), 1);
        assert!((after.busy_since(&before) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn burning_takes_the_time_it_is_given() {
        let before = of_thread();
        burn(Duration::from_millis(3));
        assert!(of_thread().saturating_sub(before) >= Duration::from_millis(3));
    }
}
