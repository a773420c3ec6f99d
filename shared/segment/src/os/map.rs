//! Mappings: the border where memory of several processes becomes atomic words.
#![expect(
    unsafe_code,
    reason = "a mapping is a raw address; here it becomes a slice of atomics, and nowhere else"
)]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous};

use crate::page::Page;
use crate::sync::Word;

/// Maps `words` words of a sealed memory file for reading and writing.
pub(super) fn writable(fd: BorrowedFd<'_>, words: usize) -> Result<Page, Errno> {
    shared(fd, words, ProtFlags::READ | ProtFlags::WRITE)
}

/// Maps `words` words of a sealed memory file for reading.
pub(super) fn readable(fd: BorrowedFd<'_>, words: usize) -> Result<Page, Errno> {
    shared(fd, words, ProtFlags::READ)
}

/// Maps `words` words of an array that programs in the kernel write, for reading.
///
/// # Errors
/// The kernel's refusal: the array was not made for it, or is smaller.
pub fn kernel_array(fd: BorrowedFd<'_>, words: usize) -> Result<Page, Errno> {
    shared(fd, words, ProtFlags::READ)
}

fn shared(fd: BorrowedFd<'_>, words: usize, protection: ProtFlags) -> Result<Page, Errno> {
    let length = words
        .checked_mul(size_of::<Word>())
        .ok_or(Errno::OVERFLOW)?;
    // SAFETY: no address is asked for, so no mapping of ours is replaced. There is no safe mmap in
    // the standard library, and the safe wrappers hand out plain bytes, which other processes may
    // change under us.
    let address = unsafe {
        mmap(
            std::ptr::null_mut(),
            length,
            protection,
            MapFlags::SHARED,
            fd,
            0,
        )
    }?;
    // A core dump of a service need not hold the pages of all others. Old kernels may refuse.
    // SAFETY: the range is the mapping just made; this advice does not change its content.
    let _advice: Result<(), Errno> = unsafe { madvise(address, length, Advice::LinuxDontDump) };
    Ok(page_at(address, words))
}

/// Gives the memory of a page back and leaves its addresses valid: they become private zeros.
///
/// A thread that still holds the page reads zeros, which no generation matches, and what it writes
/// goes nowhere. That is why a session can be dropped without a lock and without a count.
///
/// # Errors
/// `EINVAL` for a page in private memory, which is no mapping of its own, and the kernel's refusal; the page then stays as
/// it was.
pub fn retire(page: Page) -> Result<(), Errno> {
    if !page.is_mapped() {
        return Err(Errno::INVAL);
    }
    let words = page.words();
    let length = size_of_val(words);
    let address = words.as_ptr().cast::<c_void>().cast_mut();
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the range is exactly one mapping made by `shared`, as only those say that they are mapped. The new mapping
    // is readable and writable atomics again, so every `&Word` into it stays valid.
    unsafe { mmap_anonymous(address, length, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
    Ok(())
}

/// The words at the start of a mapping that is never unmapped.
fn page_at(address: *mut c_void, words: usize) -> Page {
    // SAFETY: the mapping is page-aligned, `words` words long, and is never unmapped (`retire`
    // replaces it in place). The file is sealed against shrinking, and an array of the kernel never
    // shrinks (one that is smaller is not mapped at all), so no access can fault. Its
    // words are only ever reached as atomics, in every process; a store through a read-only mapping
    // is kept out by the role types above, which have no store for a board.
    Page::over(unsafe { std::slice::from_raw_parts(address.cast::<Word>(), words) })
}
