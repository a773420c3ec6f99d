//! How many threads a group has, whatever it takes to look at each of them.

use std::path::{Path, PathBuf};

use tidegate_abi::signal::SignalId;

use super::super::meter::to_f64;
use super::super::reading::Readings;
use super::Scan;
use super::members::Members;
use crate::procfs::NoValue;
use crate::procfs::kept_file::{KeptFile, ReadBuffer};
use crate::procfs::parse::{lines, sole_number};

/// Time between two counts.
const COUNT_NS: u64 = 1_000_000_000;
/// Time to the next look for a file that tells it, where none does.
const LOOK_FOR_NS: u64 = 10_000_000_000;
/// How long the count of a look stands: a look is every so often, and a second more is what a change may take.
const LOOKED_NS: u64 = 1_500_000_000;
/// System calls to read one file, beside that to open it.
const READ_CALLS: u32 = 2;
/// Most groups whose lists are read. Whoever has more is counted thread by thread.
const DIRS_MAX: usize = 32;
/// The count that cgroup v2 keeps of a group and of those below it, where its controller is on.
const CURRENT: &str = "pids.current";
/// Lists of the threads of one group: of cgroup v2, and of v1.
const LISTS: [&str; 2] = ["cgroup.threads", "tasks"];

/// Counts by the files of the group.
#[derive(Debug)]
pub(super) struct ThreadCount {
    current: KeptFile,
    next_ns: u64,
    /// When it is looked for again, where it was not there.
    next_current_ns: u64,
    /// Scratch.
    path: PathBuf,
    /// The last count; `None` where no file tells it.
    told: Option<Counted>,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    threads: u64,
    at_ns: u64,
    /// Whether the kernel keeps the count: it then goes before what a look sees.
    by_kernel: bool,
}

impl ThreadCount {
    pub(super) fn new(group: &Path) -> Self {
        Self {
            current: KeptFile::new(group.join(CURRENT)),
            next_ns: 0,
            next_current_ns: 0,
            path: PathBuf::new(),
            told: None,
        }
    }

    /// Counts, where it is time to. The lists are long and made anew for each reading, so they are left alone where
    /// `looked_ns`, the end of the last look that saw all threads, is not long ago.
    pub(super) fn count(
        &mut self,
        looked_ns: Option<u64>,
        members: &Members,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) {
        let now_ns = scan.now_ns();
        // Not all groups in one tick.
        if now_ns < self.next_ns || scan.is_half_spent() {
            return;
        }
        let is_known =
            looked_ns.is_some_and(|looked_ns| now_ns.saturating_sub(looked_ns) < LOOKED_NS);
        let by_kernel = self.count_of_kernel(scan, buffer);
        let counted = match by_kernel {
            None if is_known => {
                self.told = None;
                return;
            }
            None => self.count_lists(members, scan, buffer),
            count => count,
        };
        self.told = counted.map(|threads| Counted {
            threads,
            at_ns: now_ns,
            by_kernel: by_kernel.is_some(),
        });
        let wait_ns = if self.told.is_some() {
            COUNT_NS
        } else {
            LOOK_FOR_NS
        };
        self.next_ns = now_ns.saturating_add(wait_ns);
    }

    fn count_of_kernel(&mut self, scan: &mut Scan, buffer: &mut ReadBuffer) -> Option<u64> {
        if scan.now_ns() < self.next_current_ns {
            return None;
        }
        scan.spend(1);
        let read = self.current.read(buffer);
        let count = read.and_then(|bytes| sole_number(bytes, CURRENT));
        if count.is_err_and(NoValue::is_absent) {
            self.next_current_ns = scan.now_ns().saturating_add(LOOK_FOR_NS);
        }
        count.ok()
    }

    fn count_lists(
        &mut self,
        members: &Members,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) -> Option<u64> {
        if members.dirs().count() > DIRS_MAX {
            return None;
        }
        let mut sum = None;
        for dir in members.dirs() {
            for list in LISTS {
                self.path.clear();
                self.path.push(dir);
                self.path.push(list);
                let count = match read(&self.path, scan, buffer) {
                    Ok(bytes) => lines(bytes).count(),
                    Err(NoValue::Empty) => 0,
                    Err(_not_told) => continue,
                };
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                sum = Some(sum.unwrap_or(0_u64).saturating_add(count));
                break;
            }
        }
        sum
    }

    /// Puts the last count into the readings, unless a look that began at `since_ns` has counted later.
    pub(super) fn tell(&self, since_ns: u64, out: &mut Readings) {
        let told = self
            .told
            .filter(|told| told.by_kernel || told.at_ns >= since_ns);
        if let Some(Counted { threads, .. }) = told {
            out.set(SignalId::Threads, Ok(to_f64(threads)));
        }
    }
}

fn read<'b>(path: &Path, scan: &mut Scan, buffer: &'b mut ReadBuffer) -> Result<&'b [u8], NoValue> {
    let read = buffer.read_once(path);
    let is_absent = read.as_ref().is_err_and(|fault| fault.is_absent());
    scan.spend(if is_absent {
        1
    } else {
        READ_CALLS.saturating_add(1)
    });
    read
}
