//! The processes of a group and of the groups below it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Scan;
use crate::procfs::directory;
use crate::procfs::kept_file::ReadBuffer;
use crate::procfs::parse::{lines, number};
use crate::procfs::{Missing, NamedSource as _, NoValue};

/// Time between two searches for groups below, for who wants to know soon of new ones.
pub(in crate::signal) const SEARCH_OFTEN_NS: u64 = 1_000_000_000;
/// System calls to search one directory.
const SEARCH_CALLS: u32 = 4;
/// How deep groups below are followed; a container in a container is at about four.
const DEPTH_MAX: usize = 8;
/// Most processes of one group that are looked at.
const PROCESSES_MAX: usize = 4096;
/// Most groups of one group that are looked at, itself included. Whoever may make groups below it may make as many
/// as it likes.
const GROUPS_MAX: usize = 1024;

/// Most names in the directory of a group: files, and the groups in it.
const NAMES_MAX: usize = GROUPS_MAX + 1024;

const PROCS: &str = "cgroup.procs";

/// System calls to read one list.
const READ_CALLS: u32 = 3;

/// Reads the lists of processes. They are opened for each reading: v1 gives one descriptor the list that it made for it
/// last for as long as that is asked for more than once a second, whoever has come or gone since.
#[derive(Debug)]
pub(in crate::signal) struct Members {
    top: PathBuf,
    /// Path of each list, by the directory of its group.
    lists: BTreeMap<PathBuf, PathBuf>,
    search: Search,
}

/// A search for groups below, some directories in each tick.
#[derive(Debug, Default)]
struct Search {
    every_ns: u64,
    next_ns: u64,
    /// The directory that is next; empty = none is under way.
    at: PathBuf,
    /// Scratch.
    path: PathBuf,
    /// Whether there are more groups than are looked at.
    is_crowded: bool,
}

impl Members {
    /// A reader for the group in this directory, and for those below it that are found once in so much time.
    pub(in crate::signal) fn new(top: &Path, every_ns: u64) -> Self {
        Self {
            top: top.to_path_buf(),
            lists: BTreeMap::from([(top.to_path_buf(), top.join(PROCS))]),
            search: Search {
                every_ns,
                ..Search::default()
            },
        }
    }

    /// Searches for groups below, where it is time to, until the turn is over; `false` = it is not finished yet.
    pub(in crate::signal) fn search(&mut self, scan: &mut Scan) -> bool {
        let search = &mut self.search;
        if search.at.as_os_str().is_empty() {
            if scan.now_ns() < search.next_ns {
                return true;
            }
            search.is_crowded = false;
            search.at.push(&self.top);
        }
        while !scan.is_turn_over() {
            scan.spend(SEARCH_CALLS);
            search.look_into(&self.top, &mut self.lists);
            let Search { at, .. } = search;
            let later = (Bound::Excluded(&*at), Bound::Unbounded);
            let next = self.lists.range::<PathBuf, _>(later).next();
            let Some((next, _list)) = next else {
                at.clear();
                search.next_ns = scan.now_ns().saturating_add(search.every_ns);
                return true;
            };
            at.clear();
            at.push(next);
        }
        false
    }

    /// The directory of the group, and of each below it that was found.
    pub(super) fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.lists.keys().map(PathBuf::as_path)
    }

    /// Puts the pids of all processes into `pids`, which is emptied first.
    ///
    /// # Errors
    /// The list of the group itself cannot be read, or there are too many processes or groups.
    pub(in crate::signal) fn read(
        &mut self,
        pids: &mut Vec<u32>,
        scan: &mut Scan,
        buffer: &mut ReadBuffer,
    ) -> Result<(), Missing> {
        pids.clear();
        let mut result = Ok(());
        let top = &self.top;
        self.lists.retain(|dir, list| {
            scan.spend(READ_CALLS);
            match buffer.read_once(list) {
                Ok(bytes) => {
                    let room = PROCESSES_MAX.saturating_add(1).saturating_sub(pids.len());
                    pids.extend(lines(bytes).filter_map(pid).take(room));
                }
                Err(NoValue::Empty) => {}
                Err(fault) if dir == top => result = Err(fault),
                // A threaded group below, whose processes the list above it has. Taken out, the next search would
                // only find it again, and make its path anew.
                Err(NoValue::Os(libc::EOPNOTSUPP)) => {}
                // A group below that has gone.
                Err(NoValue::Os(libc::ENODEV)) => return false,
                Err(fault) if fault.is_absent() => return false,
                Err(fault) => result = Err(fault),
            }
            true
        });
        if result.is_ok() && (pids.len() > PROCESSES_MAX || self.search.is_crowded) {
            result = Err(NoValue::Crowded);
        }
        result.named(PROCS)
    }
}

impl Search {
    /// Adds the groups in the directory that is next.
    fn look_into(&mut self, top: &Path, lists: &mut BTreeMap<PathBuf, PathBuf>) {
        let below = self.at.strip_prefix(top).unwrap_or(&self.at);
        if below.iter().count() >= DEPTH_MAX {
            return;
        }
        // A directory that goes away while it is searched has no processes any more.
        let Ok(dir) = directory::open(&self.at) else {
            return;
        };
        let Self {
            at,
            path,
            is_crowded,
            ..
        } = self;
        path.clear();
        path.push(at);
        let seen = directory::each_directory_of(NAMES_MAX, &dir, &mut |name| {
            path.push(OsStr::from_bytes(name));
            if !lists.contains_key(path) {
                if lists.len() < GROUPS_MAX {
                    lists.insert(path.clone(), path.join(PROCS));
                } else {
                    *is_crowded = true;
                }
            }
            path.pop();
        });
        *is_crowded |= seen == Err(NoValue::Crowded);
    }
}

/// A pid of our own pid namespace; the kernel writes 0 for a process that is in another.
pub(in crate::signal) fn pid(line: &[u8]) -> Option<u32> {
    number(line.trim_ascii())
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid != 0)
}
