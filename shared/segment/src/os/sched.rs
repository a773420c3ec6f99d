//! How the kernel schedules the calling thread.
#![expect(
    unsafe_code,
    reason = "sched_setattr has no wrapper in the C library and no safe one elsewhere"
)]

use rustix::io::Errno;

/// A slice so short that a waiting thread is let in soon, ns. The kernel's least is 100 µs.
const SHORT_SLICE_NS: u64 = 100_000;

/// Puts the calling thread before all threads of the ordinary policy: round robin at the lowest
/// real-time priority. Its children do not inherit it.
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE` or a limit that allows it, or in a group without real-time budget.
pub fn real_time() -> Result<(), Errno> {
    let policy = libc::SCHED_RR;
    set(policy, 0, 1, 0)
}

/// Leaves the calling thread in the ordinary policy, with this nice value and a short slice, so that
/// it is let in soon when it wakes (kernels before 6.12 take the nice value and ignore the slice).
///
/// # Errors
/// `EPERM` for a nice value under the present one without `CAP_SYS_NICE`.
pub fn short_slice(nice: i32) -> Result<(), Errno> {
    set(libc::SCHED_OTHER, nice, 0, SHORT_SLICE_NS)
}

fn set(policy: i32, nice: i32, priority: u32, runtime_ns: u64) -> Result<(), Errno> {
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).map_err(|_too_large| Errno::INVAL)?,
        sched_policy: u32::try_from(policy).map_err(|_negative| Errno::INVAL)?,
        sched_flags: u64::from(libc::SCHED_FLAG_RESET_ON_FORK.unsigned_abs()),
        sched_nice: nice,
        sched_priority: priority,
        sched_runtime: runtime_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the pointer is to a live struct whose size is in its first field; pid 0 is the calling
    // thread, and the call changes nothing but its scheduling.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if status == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_always_have_a_short_slice_at_its_own_nice_value() {
        let told = std::thread::spawn(|| {
            let nice = rustix::process::getpriority_process(None).unwrap();
            short_slice(nice)
        });
        assert_eq!(told.join().unwrap(), Ok(()));
    }

    #[test]
    fn real_time_is_given_or_refused_with_a_reason() {
        let told = std::thread::spawn(real_time).join().unwrap();
        assert!(matches!(told, Ok(()) | Err(Errno::PERM)), "{told:?}");
    }
}
