//! Brings lines of the pages near before they are needed.
#![cfg_attr(
    all(target_arch = "x86_64", not(loom)),
    expect(unsafe_code, reason = "a hint to the processor has no safe form")
)]

/// Asks the processor for the first cache line of `record`, without waiting for it. Where there are so many
/// resources that their lines are in no cache, the misses of a decision then overlap.
#[inline(always)]
pub(crate) fn fetch<T>(record: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing that the program sees and cannot fault.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(record).cast());
        }
    }
    // Elsewhere there is no hint.
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _: &T = record;
}
