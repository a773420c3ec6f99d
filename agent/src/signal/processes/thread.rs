//! One thread: the files that tell of it, and what its counters were at the last look.

use std::fmt;
use std::fs::File;

use super::super::meter::to_f64;
use super::super::parse::sched_stat::SchedStat;
use super::Scan;
use crate::procfs::NoValue;
use crate::procfs::kept_file::ReadBuffer;

/// How fast the counters of one thread grow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TaskRates {
    /// CPUs that it used: at most 1.
    pub(super) used_cpus: f64,
    /// Share of the time that it waited for a CPU.
    pub(super) waiting: f64,
    /// Times a second that it was put on a CPU.
    pub(super) slices_per_s: f64,
}

/// When the present look and the one before began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LookTimes {
    pub(super) now_ns: u64,
    /// Began of the look before; `None` in the first.
    pub(super) last_began_ns: Option<u64>,
}

/// One thread of a process.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: u32,
    pub(super) stat: TaskFile,
    pub(super) sched_stat: TaskFile,
    /// Whether the last list of its process has it.
    pub(super) is_listed: bool,
    /// Counters at the last look, and when that was.
    last: Option<(u64, SchedStat)>,
}

const NS_PER_S: f64 = 1e9;

impl Thread {
    pub(super) fn new(tid: u32) -> Self {
        Self {
            tid,
            stat: TaskFile::default(),
            sched_stat: TaskFile::default(),
            is_listed: true,
            last: None,
        }
    }

    /// How many of its files are open.
    pub(super) fn kept(&self) -> usize {
        let files = [&self.stat, &self.sched_stat];
        files.iter().filter(|file| file.0.is_some()).count()
    }

    /// Takes its counters. A thread that came since the last look began brings all it did: it did so
    /// since then. So a burst of short-lived threads is seen, and an exit takes nothing back.
    pub(super) fn take(&mut self, times: LookTimes, sched: SchedStat) -> Option<TaskRates> {
        let last = self.last.replace((times.now_ns, sched));
        // A counter that went back is another thread under the same tid.
        let known = last.and_then(|(then_ns, then)| Some((then_ns, since(then, sched)?)));
        let (then_ns, grown) = match known {
            Some(known) => known,
            None => (times.last_began_ns?, sched),
        };
        rates(times.now_ns.saturating_sub(then_ns), grown)
    }
}

fn since(then: SchedStat, now: SchedStat) -> Option<SchedStat> {
    Some(SchedStat {
        run_ns: now.run_ns.checked_sub(then.run_ns)?,
        wait_ns: now.wait_ns.checked_sub(then.wait_ns)?,
        slices: now.slices.checked_sub(then.slices)?,
    })
}

fn rates(elapsed_ns: u64, grown: SchedStat) -> Option<TaskRates> {
    if elapsed_ns == 0 {
        return None;
    }
    let elapsed = to_f64(elapsed_ns);
    // A thread that moved here from another group brings an old count: no more than the time itself.
    let share = |ns: u64| (to_f64(ns) / elapsed).min(1.0);
    Some(TaskRates {
        used_cpus: share(grown.run_ns),
        waiting: share(grown.wait_ns),
        slices_per_s: to_f64(grown.slices) * NS_PER_S / elapsed,
    })
}

/// A file of one thread. It stays open where the scan allows it: to open it takes five times as long
/// as to read it. It tells of this thread and of no later one with the same number.
#[derive(Debug, Default)]
pub(super) struct TaskFile(Option<File>);

impl TaskFile {
    /// The whole content now; `below` is its path below `/proc`.
    ///
    /// # Errors
    /// The operating system's refusal; a thread that has ended is one.
    pub(super) fn read<'b>(
        &mut self,
        below: fmt::Arguments<'_>,
        scan: &mut Scan,
        buffer: &'b mut ReadBuffer,
    ) -> Result<&'b [u8], NoValue> {
        scan.spend(1);
        if let Some(file) = self.0.take() {
            let bytes = buffer.read_file(&file)?;
            self.0 = Some(file);
            return Ok(bytes);
        }
        scan.spend(1);
        let file = File::open(scan.path(below)).map_err(|error| NoValue::of(&error))?;
        let bytes = buffer.read_file(&file)?;
        if scan.may_keep() {
            self.0 = Some(file);
        } else {
            // It is closed again.
            scan.spend(1);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sched(run_ns: u64, wait_ns: u64) -> SchedStat {
        SchedStat {
            run_ns,
            wait_ns,
            slices: 0,
        }
    }

    const FIRST: LookTimes = LookTimes {
        now_ns: 1000,
        last_began_ns: None,
    };
    const SECOND: LookTimes = LookTimes {
        now_ns: 2000,
        last_began_ns: Some(1000),
    };

    fn shares(rates: Option<TaskRates>) -> (f64, f64) {
        rates.map(|rates| (rates.used_cpus, rates.waiting)).unwrap()
    }

    #[test]
    fn a_known_thread_tells_its_growth_and_a_new_one_all_it_did() {
        let (mut known, mut new) = (Thread::new(7), Thread::new(8));
        assert_eq!(known.take(FIRST, sched(500, 500)), None);
        assert_eq!(shares(known.take(SECOND, sched(750, 1000))), (0.25, 0.5));
        assert_eq!(shares(new.take(SECOND, sched(100, 200))), (0.1, 0.2));
    }

    #[test]
    fn a_tid_that_is_used_again_is_another_thread() {
        let mut thread = Thread::new(7);
        assert_eq!(thread.take(FIRST, sched(500, 500)), None);
        assert_eq!(shares(thread.take(SECOND, sched(10, 20))), (0.01, 0.02));
    }

    #[test]
    fn old_counts_of_a_thread_that_moved_here_are_no_more_than_the_time() {
        let mut thread = Thread::new(9);
        let max = sched(u64::MAX, u64::MAX);
        assert_eq!(shares(thread.take(SECOND, max)), (1.0, 1.0));
    }
}
