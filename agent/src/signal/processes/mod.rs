//! The threads of a group, looked at a few in each tick: how many, what they do, how long they wait
//! for a CPU, and whether it was the garbage collector that used it.

mod affinity;
mod look;
pub(super) mod members;
mod process;
mod scan;
mod thread;
mod thread_count;
mod thread_group;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use self::affinity::Affinity;
use self::look::{Look, STAT};
use self::members::{Members, SEARCH_OFTEN_NS};
use self::process::Process;
pub(crate) use self::scan::Scan;
use self::thread::LookTimes;
use self::thread_count::ThreadCount;
pub use self::thread_group::{ThreadGroup, TopThreads};
use self::thread_group::{ThreadGroups, ThreadName};
use super::parse::cpu_set::CpuSet;
use super::parse::task_stat::TaskState;
use super::parse::{sched_stat, task_stat};
use super::reading::Readings;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::names_jvm;
use crate::procfs::{Missing, NoValue};

/// Most JVMs of one group that are read.
const JVMS_MAX: usize = 16;

const TASKS: &str = "/proc/PID/task";

/// Time after which what the look before has seen of each thread is old.
const LOOK_NS: u64 = 5_000_000_000;

/// Looks at the threads of one group, again and again.
#[derive(Debug)]
pub(crate) struct Processes {
    members: Members,
    /// Processes that this look has still to begin with.
    pids: Vec<u32>,
    /// The process that is being looked at, and the next of its threads.
    at: Option<(u32, usize)>,
    known: HashMap<u32, Process>,
    /// How many of their files are open, or more: those of processes that end are counted to the end
    /// of a look.
    kept: usize,
    expects_threads: bool,
    threads: ThreadCount,
    is_looking: bool,
    /// When the last look was finished.
    finished_ns: Option<u64>,
    /// When the last look was finished that saw every thread.
    saw_all_ns: Option<u64>,
    /// Looks so far, the present one included.
    looks: u64,
    /// Which processes the last look began with, and how often it was others than before.
    began_with: u64,
    changes: u64,
    began_ns: u64,
    last_began_ns: Option<u64>,
    look: Look,
    affinity: Box<Affinity>,
    growing: Seen,
    told: Seen,
    has_told: bool,
}

/// What a look gathers beside its sums.
#[derive(Debug)]
struct Seen {
    thread_groups: ThreadGroups,
    jvms: Vec<u32>,
    /// Why a process or thread could not be looked at, the first one.
    unseen: Option<Missing>,
}

impl Seen {
    fn new() -> Self {
        Self {
            thread_groups: ThreadGroups::new(),
            jvms: Vec::with_capacity(JVMS_MAX),
            unseen: None,
        }
    }

    fn clear(&mut self) {
        self.thread_groups.clear();
        self.jvms.clear();
        self.unseen = None;
    }

    /// Notes a JVM.
    fn note_jvm(&mut self, pid: u32, tid: u32, name: &[u8]) {
        if names_jvm(pid == tid, name) && self.jvms.len() < JVMS_MAX && !self.jvms.contains(&pid) {
            self.jvms.push(pid);
        }
    }
}

impl Processes {
    /// Looks at the group in a directory of the cpu hierarchy.
    pub(crate) fn new(group: &Path) -> Self {
        Self {
            members: Members::new(group, SEARCH_OFTEN_NS),
            pids: Vec::new(),
            at: None,
            known: HashMap::new(),
            kept: 0,
            expects_threads: false,
            threads: ThreadCount::new(group),
            is_looking: false,
            finished_ns: None,
            saw_all_ns: None,
            looks: 0,
            began_with: 0,
            changes: 0,
            began_ns: 0,
            last_began_ns: None,
            look: Look::default(),
            affinity: Affinity::unknown(),
            growing: Seen::new(),
            told: Seen::new(),
            has_told: false,
        }
    }

    /// How many files of its threads are kept open.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// CPUs that some process allows itself, as the last looks saw it; empty = not known.
    pub(crate) fn affinity(&self) -> &CpuSet {
        self.affinity.told()
    }

    /// The thread groups of the last look that was finished.
    pub(crate) fn thread_groups(&self) -> &[ThreadGroup] {
        self.told.thread_groups.as_slice()
    }

    /// Pids of the JVMs that the last finished look saw; `None` before the first is finished.
    pub(crate) fn jvms(&self) -> Option<&[u32]> {
        self.has_told.then_some(self.told.jvms.as_slice())
    }

    /// Why there may be more than the last finished look saw; `None` if it saw all.
    pub(crate) fn unseen(&self) -> Option<Missing> {
        self.told.unseen
    }

    /// How often a look began with other processes than the one before.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether a look was finished in the tick at this time. The next one begins with a later tick.
    pub(crate) fn has_looked(&self, now_ns: u64) -> bool {
        self.finished_ns == Some(now_ns)
    }

    /// Goes on with the look until it is finished or the turn is over.
    pub(crate) fn step(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer, out: &mut Readings) {
        let kept = scan.kept();
        self.go_on(scan, buffer, out);
        self.kept = self.kept.saturating_add(scan.kept().wrapping_sub(kept));
        if !self.is_looking {
            self.kept = self.known.values().map(Process::kept).sum();
        }
    }

    /// Counts the threads, once a second, and withdraws what was seen of each where the look takes long.
    pub(crate) fn count(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer, out: &mut Readings) {
        let looked_ns = self.saw_all_ns;
        self.threads.count(looked_ns, &self.members, scan, buffer);
        self.threads.tell(scan.now_ns(), out);
        if self.is_looking && scan.now_ns().saturating_sub(self.began_ns) > LOOK_NS {
            look::withdraw(out);
        }
    }

    fn go_on(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer, out: &mut Readings) {
        if !self.is_looking {
            if !self.members.search(scan) {
                return;
            }
            self.begin(scan, buffer);
        }
        while !scan.is_turn_over() {
            if let Some((pid, next)) = self.at {
                self.look_at_next(pid, next, scan, buffer);
            } else if let Some(pid) = self.pids.pop() {
                self.affinity.take(pid, scan, buffer);
                self.begin_with(pid, scan);
            } else {
                self.finish(scan, out);
                return;
            }
        }
    }

    fn begin(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) {
        self.is_looking = true;
        self.last_began_ns = (self.looks > 0).then_some(self.began_ns);
        self.looks = self.looks.saturating_add(1);
        self.began_ns = scan.now_ns();
        self.look = Look::begin(self.last_began_ns.is_none());
        self.affinity.begin(self.looks);
        self.growing.clear();
        if let Err(missing) = self.members.read(&mut self.pids, scan, buffer) {
            self.pids.clear();
            self.hide(missing);
        }
        self.expects_threads = !self.pids.is_empty();
        let began_with = mixed(&self.pids);
        if began_with != self.began_with {
            self.began_with = began_with;
            self.changes = self.changes.saturating_add(1);
        }
    }

    fn finish(&mut self, scan: &Scan, out: &mut Readings) {
        self.is_looking = false;
        self.finished_ns = Some(scan.now_ns());
        let looks = self.looks;
        self.known.retain(|_pid, process| process.look == looks);
        if self.expects_threads && self.look.is_empty() {
            // All of them hidden: `/proc` of another pid namespace, or mounted with hidepid.
            self.hide(Missing {
                source: TASKS,
                fault: NoValue::HiddenProcesses,
            });
        }
        self.look.tell(out);
        if self.look.saw_all() {
            self.saw_all_ns = self.finished_ns;
            self.threads.tell(self.began_ns, out);
        } else {
            self.threads.tell(0, out);
        }
        self.affinity.finish();
        self.growing.thread_groups.sort();
        std::mem::swap(&mut self.growing, &mut self.told);
        self.has_told = true;
    }

    fn begin_with(&mut self, pid: u32, scan: &mut Scan) {
        let process = self.known.entry(pid).or_default();
        process.look = self.looks;
        match process.list(pid, scan) {
            Ok(()) => self.at = Some((pid, 0)),
            Err(fault) => self.note_unseen(TASKS, fault),
        }
    }

    /// Looks at one thread, or is done with the process.
    fn look_at_next(&mut self, pid: u32, next: usize, scan: &mut Scan, buffer: &mut ReadBuffer) {
        self.at = Some((pid, next.saturating_add(1)));
        let Some(process) = self.known.get_mut(&pid) else {
            self.at = None;
            return;
        };
        let Some(thread) = process.threads.get_mut(next) else {
            self.at = None;
            return;
        };
        let tid = thread.tid;
        let below = format_args!("/{pid}/task/{tid}/stat");
        let stat = thread.stat.read(below, scan, buffer);
        let (name, state) = match stat.and_then(task_stat::parse) {
            Ok(stat) => (ThreadName::of(stat.name), stat.state),
            Err(fault) => {
                process.note_end();
                return self.note_unseen(STAT, fault);
            }
        };
        if state == TaskState::Ended {
            return;
        }
        self.look.add(name.bytes(), state);
        self.growing.note_jvm(pid, tid, name.bytes());
        let below = format_args!("/{pid}/task/{tid}/schedstat");
        let sched = thread.sched_stat.read(below, scan, buffer);
        let times = LookTimes {
            now_ns: scan.now_ns(),
            last_began_ns: self.last_began_ns,
        };
        let rates = match sched.and_then(sched_stat::parse) {
            Ok(sched) => thread.take(times, sched).unwrap_or_default(),
            Err(fault) => {
                // A kernel that does not count has no such file; a thread that ended no directory.
                if scan.path(format_args!("/{pid}/task/{tid}")).is_dir() {
                    self.look.without_rates(fault);
                }
                return;
            }
        };
        self.look.add_rates(name.bytes(), rates);
        let groups = &mut self.growing.thread_groups;
        groups.add(name.bytes(), rates.used_cpus);
    }

    /// A thread that ended while it was looked at is gone, and that is all; anything else hides it.
    fn note_unseen(&mut self, source: &'static str, fault: NoValue) {
        if !is_ended(fault) {
            self.hide(Missing { source, fault });
        }
    }

    fn hide(&mut self, missing: Missing) {
        self.look.hide(missing);
        self.growing.unseen.get_or_insert(missing);
    }
}

/// Tells sets of pids apart, in whatever order: the sum of the pids, each mixed by the last step of `SplitMix64`. Two sets that
/// are taken for one are looked at a few seconds later all the same.
fn mixed(pids: &[u32]) -> u64 {
    let mixed = pids.iter().map(|pid| {
        let first = u64::from(*pid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (first ^ (first >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    mixed.fold(0, u64::wrapping_add)
}

/// Whether that is how a file of a thread fails that has just ended: gone, without content, or half.
fn is_ended(fault: NoValue) -> bool {
    fault.is_absent()
        || matches!(
            fault,
            NoValue::Os(libc::ESRCH) | NoValue::Empty | NoValue::NoField(_)
        )
}
