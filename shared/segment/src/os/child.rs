//! A forked child process, to show that permits and pages are safe from it.
#![expect(
    unsafe_code,
    reason = "fork and _exit have no safe form; here they are one call that cannot return twice"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use rustix::process::Pid;

/// Exit code of a child whose work panicked.
pub const PANICKED: u8 = 101;

/// Forks a child that does `work` and exits with the code it gives. The caller waits for the child.
///
/// Only the calling thread lives on in the child: `work` must not wait for others, nor for a lock
/// that another thread may hold.
///
/// # Errors
/// The kernel's refusal: no memory or no process is left.
pub fn fork(work: impl FnOnce() -> u8) -> Result<Pid, Errno> {
    // SAFETY: the child never returns into the caller's frames, so nothing of theirs is dropped
    // twice. glibc keeps its allocator usable in the child of a process with several threads; a lock
    // of ours that another thread holds can stop the child but cannot corrupt it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED);
        // SAFETY: ends the process at once, without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(code)) }
    }
    Pid::from_raw(pid).ok_or(Errno::AGAIN)
}
