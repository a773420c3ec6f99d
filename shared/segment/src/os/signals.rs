//! Which signals the calling thread takes.
#![expect(
    unsafe_code,
    reason = "signal masks have no safe wrapper among the libraries here"
)]

use std::mem::MaybeUninit;
use std::ptr;

use rustix::io::Errno;

/// Does something while no signal is delivered to the calling thread.
///
/// Threads that are started meanwhile take none for good, so that a program that waits for its signals in a thread of
/// its own gets them all.
///
/// # Errors
/// The kernel's refusal; nothing was done then.
pub fn with_all_blocked<T>(act: impl FnOnce() -> T) -> Result<T, Errno> {
    let before = BlockedSignals(set(&all()?)?);
    let done = act();
    drop(before);
    Ok(done)
}

/// The signals that were blocked; they are again once this is dropped.
struct BlockedSignals(libc::sigset_t);

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // The set came from the kernel, so it takes it back.
        let _set: Result<libc::sigset_t, Errno> = set(&self.0);
    }
}

fn all() -> Result<libc::sigset_t, Errno> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the place has room for a set.
    let status = unsafe { libc::sigfillset(all.as_mut_ptr()) };
    if status != 0 {
        return Err(Errno::INVAL);
    }
    // SAFETY: the call has filled it.
    Ok(unsafe { all.assume_init() })
}

/// Blocks these signals and no others; gives those that were blocked before.
fn set(signals: &libc::sigset_t) -> Result<libc::sigset_t, Errno> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let new = ptr::from_ref(signals);
    // SAFETY: both places are valid for a set.
    let status = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, new, before.as_mut_ptr()) };
    if status != 0 {
        return Err(Errno::from_raw_os_error(status));
    }
    // SAFETY: the call has filled it.
    Ok(unsafe { before.assume_init() })
}
