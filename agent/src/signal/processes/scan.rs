//! What the looks at threads may cost in one tick, and the means that they share.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::procfs::kept_file::is_below_proc;

/// System calls of one tick for the threads of all groups. Two hundred processes of one thread are
/// looked at once a second with it.
const CALLS_PER_TICK: u32 = 64;
/// System calls of one turn of a group: whoever has many threads does not keep others waiting.
const CALLS_PER_TURN: u32 = 16;
/// Most files of threads that are kept open. The kernel holds about 5 KiB for each.
const KEPT_MAX: u64 = 1024;
/// Share of the files that this process may open: services connect too.
const KEPT_SHARE: u64 = 8;

/// What may still be done in this tick, over all groups. Work that is begun is finished, and what it
/// costs beyond the tick's share is missing in the next.
#[derive(Debug)]
pub(crate) struct Scan {
    now_ns: u64,
    left: u32,
    owed: u32,
    /// Of what is left, what the present turn may take.
    turn_left: u32,
    may_keep: usize,
    /// Files kept open since the beginning.
    kept: usize,
    keeps: bool,
    proc: PathBuf,
    path: OsString,
}

impl Scan {
    /// A scan of the processes below the tree that stands for `/proc`.
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            now_ns: 0,
            left: 0,
            owed: 0,
            turn_left: 0,
            may_keep: 0,
            kept: 0,
            // Plain files may be replaced, which an open one would never tell.
            keeps: is_below_proc(proc),
            proc: proc.to_path_buf(),
            path: OsString::with_capacity(256),
        }
    }

    /// Begins a tick; `kept` files of threads are open in all groups.
    pub(crate) fn begin_tick(&mut self, now_ns: u64, kept: usize) {
        self.now_ns = now_ns;
        self.left = CALLS_PER_TICK.saturating_sub(self.owed);
        self.owed = self.owed.saturating_sub(CALLS_PER_TICK);
        self.may_keep = if self.keeps {
            most_kept().saturating_sub(kept)
        } else {
            0
        };
    }

    /// Begins the turn of a group.
    pub(crate) fn begin_turn(&mut self) {
        self.turn_left = CALLS_PER_TURN;
    }

    /// Whether this tick has done its share.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Whether this tick has done half of its share.
    pub(crate) fn is_half_spent(&self) -> bool {
        self.left <= CALLS_PER_TICK / 2
    }

    /// Whether this turn has done its share, or the tick.
    pub(super) fn is_turn_over(&self) -> bool {
        self.turn_left == 0 || self.is_spent()
    }

    /// Takes down that so many system calls were made.
    pub(crate) fn spend(&mut self, calls: u32) {
        let beyond = calls.saturating_sub(self.left);
        self.owed = self.owed.saturating_add(beyond);
        self.left = self.left.saturating_sub(calls);
        self.turn_left = self.turn_left.saturating_sub(calls);
    }

    /// Asks for leave to keep one more file open.
    pub(super) fn may_keep(&mut self) -> bool {
        let may = self.may_keep > 0;
        self.may_keep = self.may_keep.saturating_sub(1);
        self.kept = self.kept.wrapping_add(usize::from(may));
        may
    }

    /// How many times leave was given to keep a file open, modulo 2^64.
    pub(super) fn kept(&self) -> usize {
        self.kept
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

fn most_kept() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((files / KEPT_SHARE).min(KEPT_MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tick_overdraws_is_missing_in_the_next() {
        let mut scan = Scan::new(Path::new("/nowhere"));
        let mut lefts = Vec::new();
        scan.begin_tick(1, 0);
        scan.spend(CALLS_PER_TICK + CALLS_PER_TICK + 4);
        for tick in 2..5 {
            assert!(tick > 2 || scan.is_spent());
            scan.begin_tick(tick, 0);
            lefts.push(scan.left);
        }
        assert_eq!(lefts, [0, CALLS_PER_TICK - 4, CALLS_PER_TICK]);
    }

    #[test]
    fn files_are_kept_open_below_the_real_proc_alone_and_not_without_end() {
        let mut scan = Scan::new(Path::new("/proc"));
        let most = most_kept();
        assert!((1..=1024).contains(&most));
        scan.begin_tick(1, most - 1);
        assert_eq!([scan.may_keep(), scan.may_keep()], [true, false]);
        let mut scan = Scan::new(tempfile::tempdir().unwrap().path());
        scan.begin_tick(1, 0);
        assert!(!scan.may_keep());
    }
}
