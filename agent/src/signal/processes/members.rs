//! The processes of a group and of the groups below it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::super::directory;
use super::super::kept_file::{KeptFile, ReadBuffer};
use super::super::parse::{lines, number};
use super::super::reading::{Fault, Missing, Named as _};
use super::Scan;

/// Time between two searches for groups below.
const SEARCH_EVERY_NS: u64 = 1_000_000_000;
/// System calls to search one directory.
const SEARCH_CALLS: u32 = 4;
/// How deep groups below are followed; a container in a container is at about four.
const DEPTH_MAX: usize = 8;
/// Most processes of one group that are looked at.
const PROCESSES_MAX: usize = 4096;

const PROCS: &str = "cgroup.procs";

/// Reads the lists of processes, which stay open.
#[derive(Debug)]
pub(super) struct Members {
    top: PathBuf,
    lists: Vec<(PathBuf, KeptFile)>,
    path: PathBuf,
    next_search_ns: u64,
}

impl Members {
    /// A reader for the group in this directory.
    pub(super) fn new(top: &Path) -> Self {
        Self {
            top: top.to_path_buf(),
            lists: vec![(top.to_path_buf(), KeptFile::new(top.join(PROCS)))],
            path: PathBuf::new(),
            next_search_ns: 0,
        }
    }

    /// Puts the pids of all processes into `pids`, which is emptied first.
    ///
    /// # Errors
    /// The list of the group itself cannot be read, or there are too many processes.
    pub(super) fn read(
        &mut self,
        pids: &mut Vec<u32>,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) -> Result<(), Missing> {
        let lists = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        scan.spend(lists);
        if scan.now_ns() >= self.next_search_ns {
            self.next_search_ns = scan.now_ns().saturating_add(SEARCH_EVERY_NS);
            scan.spend(lists.saturating_mul(SEARCH_CALLS));
            self.search();
        }
        pids.clear();
        let mut result = Ok(());
        self.lists
            .retain_mut(|(dir, list)| match list.read(buffer) {
                Ok(bytes) => {
                    pids.extend(lines(bytes).filter_map(pid));
                    true
                }
                Err(Fault::Empty) => true,
                Err(fault) if *dir == self.top => {
                    result = Err(fault);
                    true
                }
                // A group below that has gone; or a threaded one, whose processes the list above it has.
                Err(Fault::Os(libc::ENODEV | libc::EOPNOTSUPP)) => false,
                Err(fault) if fault.is_absent() => false,
                Err(fault) => {
                    result = Err(fault);
                    true
                }
            });
        if pids.len() > PROCESSES_MAX {
            result = Err(Fault::TooMany);
        }
        result.named(PROCS)
    }

    fn search(&mut self) {
        self.path.clear();
        self.path.push(&self.top);
        walk(DEPTH_MAX, &mut self.path, &mut self.lists);
    }
}

/// A pid of our own pid namespace; the kernel writes 0 for a process that is in another.
pub(in crate::signal) fn pid(line: &[u8]) -> Option<u32> {
    number(line.trim_ascii())
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid != 0)
}

fn walk(depth: usize, path: &mut PathBuf, lists: &mut Vec<(PathBuf, KeptFile)>) {
    let Ok(dir) = directory::open(path) else {
        return;
    };
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    // A directory that goes away while it is searched has no processes any more.
    let _gone = directory::each_directory(&dir, &mut |name| {
        path.push(OsStr::from_bytes(name));
        if !lists.iter().any(|(known, _list)| known == path) {
            lists.push((path.clone(), KeptFile::new(path.join(PROCS))));
        }
        walk(depth, path, lists);
        path.pop();
    });
}
