//! Which CPU a thread of the bench runs on.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

const THIS_THREAD: Pid = Pid::from_raw(0);

/// Puts the thread back on all its CPUs when dropped.
#[derive(Debug)]
#[must_use = "dropped, the thread may move again"]
pub(crate) struct Pinned {
    before: Option<CpuSet>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Refused, it stays where it is; the figures are right all the same.
            let _refused: nix::Result<()> = sched_setaffinity(THIS_THREAD, before);
        }
    }
}

/// The CPUs that this thread may use.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(THIS_THREAD) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Keeps the thread on the `nth` of its CPUs; where there is none or the kernel refuses, it stays
/// free.
pub(crate) fn pin(nth: usize) -> Pinned {
    let before = sched_getaffinity(THIS_THREAD).ok();
    if let Some(cpu) = allowed().get(nth) {
        let mut only = CpuSet::new();
        if only.set(*cpu).is_ok() {
            let _refused: nix::Result<()> = sched_setaffinity(THIS_THREAD, &only);
        }
    }
    Pinned { before }
}
