//! What each thread's counters were when it was looked at last.

use std::collections::HashMap;

use super::super::meter::to_f64;
use super::super::parse::sched_stat::SchedStat;

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

#[derive(Debug, Clone, Copy)]
struct TaskRecord {
    look: u64,
    read_ns: u64,
    sched: SchedStat,
}

/// The threads of one group by their tid, each with the look that saw it last.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    tasks: HashMap<u32, TaskRecord>,
    look: u64,
    look_began_ns: u64,
    last_look_began_ns: u64,
}

const NS_PER_S: f64 = 1e9;

impl TaskTable {
    /// Begins the next look.
    pub(super) fn begin_look(&mut self, now_ns: u64) {
        self.look = self.look.saturating_add(1);
        self.last_look_began_ns = self.look_began_ns;
        self.look_began_ns = now_ns;
    }

    /// Whether this is the first look, which has nothing to compare with.
    pub(super) fn is_first_look(&self) -> bool {
        self.look <= 1
    }

    /// Ends the look: forgets the threads that it did not see.
    pub(super) fn end_look(&mut self) {
        let look = self.look;
        self.tasks.retain(|_tid, task| task.look == look);
    }

    /// Takes a thread's counters. A thread that came since the last look began brings all it did: it
    /// did so since then. So a burst of short-lived threads is seen, and an exit takes nothing back.
    pub(super) fn take(&mut self, tid: u32, now_ns: u64, sched: SchedStat) -> Option<TaskRates> {
        let record = TaskRecord {
            look: self.look,
            read_ns: now_ns,
            sched,
        };
        let grown = |now: u64, then: u64| now.checked_sub(then);
        let since = |last: &TaskRecord| {
            let grown = SchedStat {
                run_ns: grown(sched.run_ns, last.sched.run_ns)?,
                wait_ns: grown(sched.wait_ns, last.sched.wait_ns)?,
                slices: grown(sched.slices, last.sched.slices)?,
            };
            Some((last.read_ns, grown))
        };
        // A counter that went back is another thread under the same tid.
        let known = self.tasks.insert(tid, record).as_ref().and_then(since);
        if known.is_none() && self.is_first_look() {
            return None;
        }
        let (then_ns, grown) = known.unwrap_or((self.last_look_began_ns, sched));
        rates(now_ns.saturating_sub(then_ns), grown)
    }
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

    fn shares(rates: Option<TaskRates>) -> (f64, f64) {
        rates.map(|rates| (rates.used_cpus, rates.waiting)).unwrap()
    }

    #[test]
    fn a_known_thread_tells_its_growth_and_a_new_one_all_it_did() {
        let mut table = TaskTable::default();
        table.begin_look(1000);
        assert_eq!(table.take(7, 1000, sched(500, 500)), None);
        table.end_look();
        table.begin_look(2000);
        assert_eq!(shares(table.take(7, 2000, sched(750, 1000))), (0.25, 0.5));
        assert_eq!(shares(table.take(8, 2000, sched(100, 200))), (0.1, 0.2));
        table.end_look();
    }

    #[test]
    fn a_tid_that_is_used_again_is_another_thread() {
        let mut table = TaskTable::default();
        table.begin_look(1000);
        assert_eq!(table.take(7, 1000, sched(500, 500)), None);
        table.end_look();
        table.begin_look(2000);
        assert_eq!(shares(table.take(7, 2000, sched(10, 20))), (0.01, 0.02));
    }

    #[test]
    fn threads_that_are_gone_are_forgotten() {
        let mut table = TaskTable::default();
        table.begin_look(1000);
        assert_eq!(table.take(7, 1000, sched(1, 1)), None);
        table.end_look();
        table.begin_look(2000);
        table.end_look();
        assert!(table.tasks.is_empty());
    }

    #[test]
    fn old_counts_of_a_thread_that_moved_here_are_no_more_than_the_time() {
        let mut table = TaskTable::default();
        table.begin_look(1000);
        table.end_look();
        table.begin_look(2000);
        assert_eq!(
            shares(table.take(9, 2000, sched(u64::MAX, u64::MAX))),
            (1.0, 1.0)
        );
    }
}
