//! How many threads a group has, whatever it takes to look at each of them.

use std::path::{Path, PathBuf};

use tidegate_abi::signal::SignalId;

use super::super::meter::to_f64;
use super::super::reading::Readings;
use super::Scan;
use super::members::Members;
use crate::procfs::Fault;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::parse::{lines, sole_number};

/// Time between two counts.
const COUNT_NS: u64 = 1_000_000_000;
/// Time to the next look for a file that tells it, where none does.
const LOOK_FOR_NS: u64 = 10_000_000_000;
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
    current: PathBuf,
    next_ns: u64,
    /// When it is looked for again, where it was not there.
    next_current_ns: u64,
    /// Scratch.
    path: PathBuf,
    /// The last count; `None` where no file tells it.
    told: Option<u64>,
}

impl ThreadCount {
    pub(super) fn new(group: &Path) -> Self {
        Self {
            current: group.join(CURRENT),
            next_ns: 0,
            next_current_ns: 0,
            path: PathBuf::new(),
            told: None,
        }
    }

    /// Counts, where it is time to.
    pub(super) fn count(&mut self, members: &Members, scan: &mut Scan, buffer: &mut ReadBuffer) {
        // Not all groups in one tick.
        if scan.now_ns() < self.next_ns || scan.is_half_spent() {
            return;
        }
        let current = if scan.now_ns() < self.next_current_ns {
            Err(Fault::Os(libc::ENOENT))
        } else {
            read(&self.current, scan, buffer).and_then(|bytes| sole_number(bytes, CURRENT))
        };
        if current.is_err_and(Fault::is_absent) && scan.now_ns() >= self.next_current_ns {
            self.next_current_ns = scan.now_ns().saturating_add(LOOK_FOR_NS);
        }
        self.told = match current {
            Ok(count) => Some(count),
            Err(_not_told) => self.count_lists(members, scan, buffer),
        };
        let wait_ns = if self.told.is_some() {
            COUNT_NS
        } else {
            LOOK_FOR_NS
        };
        self.next_ns = scan.now_ns().saturating_add(wait_ns);
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
                    Err(Fault::Empty) => 0,
                    Err(_not_told) => continue,
                };
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                sum = Some(sum.unwrap_or(0_u64).saturating_add(count));
                break;
            }
        }
        sum
    }

    /// Puts the last count into the readings; where there is none, what the look counted stands.
    pub(super) fn tell(&self, out: &mut Readings) {
        if let Some(count) = self.told {
            out.set(SignalId::Threads, Ok(to_f64(count)));
        }
    }
}

fn read<'b>(path: &Path, scan: &mut Scan, buffer: &'b mut ReadBuffer) -> Result<&'b [u8], Fault> {
    let read = buffer.read_once(path);
    let is_absent = read.as_ref().is_err_and(|fault| fault.is_absent());
    scan.spend(if is_absent {
        1
    } else {
        READ_CALLS.saturating_add(1)
    });
    read
}
