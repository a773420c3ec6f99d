//! The threads of a group, looked at a few in each tick: how many, what they do, how long they wait
//! for a CPU, and whether it was the garbage collector that used it.

mod look;
mod members;
mod task_table;
mod thread_group;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use self::look::{Look, STAT};
use self::members::Members;
use self::task_table::TaskTable;
pub use self::thread_group::ThreadGroup;
use self::thread_group::{ThreadGroups, ThreadName};
use super::directory;
use super::kept_file::ReadBuffer;
use super::parse::task_stat::TaskState;
use super::parse::{number, sched_stat, task_stat};
use super::reading::{Fault, Missing, Readings};

/// Threads that are looked at in one tick, over all groups: about 200 system calls.
const THREADS_PER_TICK: u32 = 32;
/// What finding the threads of one process costs, against looking at one thread.
const LISTING_COST: u32 = 1;

/// Most JVMs of one group that are read.
const JVMS_MAX: usize = 16;

const TASKS: &str = "/proc/PID/task";

/// What the looks of all groups share in one tick: what may still be done, and the means.
#[derive(Debug)]
pub(crate) struct Scan {
    now_ns: u64,
    budget: u32,
    proc: PathBuf,
    path: OsString,
}

impl Scan {
    /// A scan of the processes below the tree that stands for `/proc`.
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            now_ns: 0,
            budget: 0,
            proc: proc.to_path_buf(),
            path: OsString::with_capacity(256),
        }
    }

    /// Begins a tick.
    pub(crate) fn begin_tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.budget = THREADS_PER_TICK;
    }

    /// Whether this tick has done its share.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget == 0
    }

    fn spend(&mut self, cost: u32) {
        self.budget = self.budget.saturating_sub(cost);
    }

    /// When the tick is.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A path below `/proc`, in memory that is used again.
    pub(crate) fn path(&mut self, below: fmt::Arguments<'_>) -> &Path {
        self.path.clear();
        self.path.push(&self.proc);
        // Writing to a string in memory cannot fail.
        let _written = self.path.write_fmt(below).is_ok();
        Path::new(&self.path)
    }
}

/// Looks at the threads of one group, again and again.
#[derive(Debug)]
pub(crate) struct Processes {
    members: Members,
    pids: Vec<u32>,
    tids: Vec<(u32, u32)>,
    expects_threads: bool,
    is_looking: bool,
    look: Look,
    table: TaskTable,
    growing: Seen,
    told: Seen,
    has_told: bool,
}

/// What a look gathers beside its sums.
#[derive(Debug)]
struct Seen {
    thread_groups: ThreadGroups,
    jvms: Vec<u32>,
}

impl Seen {
    fn new() -> Self {
        Self {
            thread_groups: ThreadGroups::new(),
            jvms: Vec::with_capacity(JVMS_MAX),
        }
    }

    fn clear(&mut self) {
        self.thread_groups.clear();
        self.jvms.clear();
    }

    /// Notes a JVM by its launcher or by a thread that every `HotSpot` has.
    fn note_jvm(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let is_jvm = name == b"VM Thread" || (pid == tid && name == b"java");
        if is_jvm && self.jvms.len() < JVMS_MAX && !self.jvms.contains(&pid) {
            self.jvms.push(pid);
        }
    }
}

impl Processes {
    /// Looks at the group in a directory of the cpu hierarchy.
    pub(crate) fn new(group: &Path) -> Self {
        Self {
            members: Members::new(group),
            pids: Vec::new(),
            tids: Vec::new(),
            expects_threads: false,
            is_looking: false,
            look: Look::default(),
            table: TaskTable::default(),
            growing: Seen::new(),
            told: Seen::new(),
            has_told: false,
        }
    }

    /// The thread groups of the last look that was finished.
    pub(crate) fn thread_groups(&self) -> &[ThreadGroup] {
        self.told.thread_groups.as_slice()
    }

    /// Pids of the JVMs that the last finished look saw; `None` before the first is finished.
    pub(crate) fn jvms(&self) -> Option<&[u32]> {
        self.has_told.then_some(self.told.jvms.as_slice())
    }

    /// Goes on with the look until it is finished or the tick has done its share.
    pub(crate) fn step(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer, out: &mut Readings) {
        if !self.is_looking {
            self.begin(scan, buffer);
        }
        while !scan.is_spent() {
            if let Some((pid, tid)) = self.tids.pop() {
                self.look_at(pid, tid, scan, buffer);
            } else if let Some(pid) = self.pids.pop() {
                self.list_threads(pid, scan);
            } else {
                self.finish(out);
                return;
            }
        }
    }

    fn begin(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) {
        self.is_looking = true;
        self.table.begin_look(scan.now_ns);
        self.look = Look::begin(self.table.is_first_look());
        self.growing.clear();
        scan.spend(LISTING_COST);
        if let Err(missing) = self.members.read(scan.now_ns, &mut self.pids, buffer) {
            self.pids.clear();
            self.look.hide(missing);
        }
        self.expects_threads = !self.pids.is_empty();
    }

    fn finish(&mut self, out: &mut Readings) {
        self.is_looking = false;
        self.table.end_look();
        if self.expects_threads && self.look.is_empty() {
            // All of them hidden: `/proc` of another pid namespace, or mounted with hidepid.
            self.look.hide(Missing {
                source: TASKS,
                fault: Fault::Os(libc::ENOENT),
            });
        }
        self.look.tell(out);
        std::mem::swap(&mut self.growing, &mut self.told);
        self.has_told = true;
    }

    fn list_threads(&mut self, pid: u32, scan: &mut Scan) {
        scan.spend(LISTING_COST);
        let tids = &mut self.tids;
        let listed = directory::open(scan.path(format_args!("/{pid}/task"))).and_then(|dir| {
            directory::each_directory(dir, &mut |name| {
                let tid = number(name).and_then(|tid| u32::try_from(tid).ok());
                tids.extend(tid.map(|tid| (pid, tid)));
            })
        });
        if let Err(fault) = listed {
            self.note_unseen(TASKS, fault);
        }
    }

    fn look_at(&mut self, pid: u32, tid: u32, scan: &mut Scan, buffer: &mut ReadBuffer) {
        scan.spend(1);
        let path = scan.path(format_args!("/{pid}/task/{tid}/stat"));
        let (name, state) = match buffer.read_once(path).and_then(task_stat::parse) {
            Ok(stat) => (ThreadName::of(stat.name), stat.state),
            Err(fault) => return self.note_unseen(STAT, fault),
        };
        if state == TaskState::Ended {
            return;
        }
        self.look.add(name.bytes(), state);
        self.growing.note_jvm(pid, tid, name.bytes());
        let path = scan.path(format_args!("/{pid}/task/{tid}/schedstat"));
        let sched = buffer.read_once(path).and_then(sched_stat::parse);
        let rates = match sched {
            Ok(sched) => self.table.take(tid, scan.now_ns, sched).unwrap_or_default(),
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
    fn note_unseen(&mut self, source: &'static str, fault: Fault) {
        if !is_ended(fault) {
            self.look.hide(Missing { source, fault });
        }
    }
}

/// Whether that is how a file of a thread fails that has just ended: gone, without content, or half.
fn is_ended(fault: Fault) -> bool {
    fault.is_absent()
        || matches!(
            fault,
            Fault::Os(libc::ESRCH) | Fault::Empty | Fault::NoField(_)
        )
}
