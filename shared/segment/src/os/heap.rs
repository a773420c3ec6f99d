//! The heap of this process.
#![expect(unsafe_code, reason = "mallopt and malloc_trim have no safe wrapper")]

/// The heap gives back what is free at its end from this many bytes on, and maps larger blocks by themselves.
#[cfg(target_env = "gnu")]
const SMALL: i32 = 128 * 1024;

/// Lets the heap stay small after large pieces of work, from now on and for every thread.
///
/// These are the C library's own first values; it raises them hundredfold when a large block is freed, unless
/// they are set. Other C libraries than glibc are left as they are.
pub fn stay_small() {
    #[cfg(target_env = "gnu")]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: the call takes no pointer and sets a number of the allocator, under the allocator's own lock.
        let _is_set: i32 = unsafe { libc::mallopt(parameter, SMALL) };
    }
}

/// Gives whole pages that hold nothing back to the kernel, of every thread's part of the heap.
///
/// It takes milliseconds and holds up other threads that allocate: for after a large piece of work that is done
/// seldom. Other C libraries than glibc are left as they are.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes no pointer, touches free memory only and may be made at any time.
        let _given_any: i32 = unsafe { libc::malloc_trim(0) };
    }
}
