//! Fork detection without a system call: a page that the kernel wipes in the child.
#![expect(
    unsafe_code,
    reason = "a private mapping with MADV_WIPEONFORK has no safe wrapper"
)]

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::sync::{Ordering, Word};

/// Bytes mapped: the kernel rounds up to a page of its own.
const LENGTH: usize = 4096;
const PRESENT: u64 = 1;
const CLAIMED: u64 = 2;

/// Says whether this process is still the one that made it.
#[derive(Debug, Clone, Copy)]
pub struct ForkToken {
    word: &'static Word,
}

impl ForkToken {
    /// Makes a token of this process. It lives as long as the process.
    ///
    /// # Errors
    /// The kernel's refusal; `MADV_WIPEONFORK` needs Linux 4.14.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: no address is asked for, so no mapping of ours is replaced.
        let address = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                LENGTH,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // SAFETY: the range is the mapping just made, which nobody else knows yet.
        unsafe { madvise(address, LENGTH, Advice::LinuxWipeOnFork) }?;
        // SAFETY: the mapping is page-aligned, longer than a word, readable and writable, and never
        // unmapped; a child gets zeros at the same place. Only this process and its children see it.
        let word = unsafe { &*address.cast::<Word>() };
        // Relaxed: whoever reads the token got it through a hand-over that orders this store.
        word.store(PRESENT, Ordering::Relaxed);
        Ok(Self { word })
    }

    /// Whether this process forked off the one that made the token.
    #[inline]
    pub fn forked(self) -> bool {
        // Relaxed: the word changes only in a fork, which orders everything before it.
        self.word.load(Ordering::Relaxed) != PRESENT
    }

    /// In a forked process, true for exactly one caller: the one that makes what is to replace the
    /// state of the parent. Always false in the process that made the token.
    pub fn claim(self) -> bool {
        // Relaxed: the winner hands its work over by other words.
        let before = self.word.change(Ordering::Relaxed, |seen| match seen {
            0 => CLAIMED,
            other => other,
        });
        before == 0
    }
}
