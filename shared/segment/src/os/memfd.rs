//! Memory files: made and sealed by the agent, checked by a service before its first read.

use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::os::map;
use crate::page::Page;

/// What a memory file is for; decides its seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Nobody but the process that made it can ever write it.
    Board,
    /// Everybody who has the descriptor writes it; nobody changes its size or seals.
    Ledger,
}

impl MemoryKind {
    const fn seals(self) -> SealFlags {
        let fixed = SealFlags::SHRINK
            .union(SealFlags::GROW)
            .union(SealFlags::SEAL);
        match self {
            Self::Board => fixed.union(SealFlags::FUTURE_WRITE),
            Self::Ledger => fixed,
        }
    }
    const fn name(self) -> &'static str {
        match self {
            Self::Board => "tidegate-board",
            Self::Ledger => "tidegate-ledger",
        }
    }
}

/// Why a memory file could not be made or cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The kernel refused.
    #[error("{name}: {call}: {errno}")]
    Kernel {
        /// Name of the file.
        name: &'static str,
        /// What was tried.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
    /// A file may not be that large.
    #[error(
        "{name}: {needed} bytes are needed, a file may have {allowed} (RLIMIT_FSIZE); raise the limit (ulimit -f, \
         LimitFSIZE=), or lower pages.max_resources"
    )]
    TooLarge {
        /// Name of the file.
        name: &'static str,
        /// Bytes that it would have.
        needed: u64,
        /// Bytes that the process may give a file.
        allowed: u64,
    },
    /// A seal is missing: another process could cut the file or write it.
    #[error("{name}: seals are {seals:?}, {needed:?} are needed; the other side is not an agent")]
    Unsealed {
        /// Name of the file.
        name: &'static str,
        /// What is there.
        seals: SealFlags,
        /// What is needed.
        needed: SealFlags,
    },
    /// The file has another size than was said.
    #[error("{name}: {found} bytes, {said} were announced")]
    Size {
        /// Name of the file.
        name: &'static str,
        /// Bytes of the file.
        found: u64,
        /// Bytes announced.
        said: u64,
    },
}

/// The refusal of a file's size.
fn too_large(kind: MemoryKind, needed: u64) -> impl Fn(Errno) -> FileError {
    move |errno| match (errno, getrlimit(Resource::Fsize).current) {
        (Errno::FBIG, Some(allowed)) => FileError::TooLarge {
            name: kind.name(),
            needed,
            allowed,
        },
        _other => kernel(kind, "ftruncate")(errno),
    }
}

fn kernel(kind: MemoryKind, call: &'static str) -> impl Fn(Errno) -> FileError {
    move |errno| FileError::Kernel {
        name: kind.name(),
        call,
        errno,
    }
}

/// Makes a memory file of `words` words at its full (sparse) size, maps it writable and seals it.
///
/// # Errors
/// The kernel's refusal: no memory, no descriptors, or a kernel before 5.1 without `FUTURE_WRITE`.
pub fn create(kind: MemoryKind, words: usize) -> Result<(Page, OwnedFd), FileError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create(kind.name(), flags).map_err(kernel(kind, "memfd_create"))?;
    ftruncate(&fd, bytes(words)).map_err(too_large(kind, bytes(words)))?;
    let page = map::writable(fd.as_fd(), words).map_err(kernel(kind, "mmap"))?;
    // Only now: FUTURE_WRITE leaves mappings that exist alone.
    fcntl_add_seals(&fd, kind.seals()).map_err(kernel(kind, "F_ADD_SEALS"))?;
    Ok((page, fd))
}

/// Checks the seals and size of a file that came over a socket, then maps it: a board read-only, a
/// ledger writable.
///
/// # Errors
/// A missing seal or another size (nothing is mapped then), or the kernel's refusal.
pub fn open(kind: MemoryKind, fd: &OwnedFd, words: usize) -> Result<Page, FileError> {
    let seals = fcntl_get_seals(fd).map_err(kernel(kind, "F_GET_SEALS"))?;
    if !seals.contains(kind.seals()) {
        return Err(FileError::Unsealed {
            name: kind.name(),
            seals,
            needed: kind.seals(),
        });
    }
    let found = fstat(fd).map_err(kernel(kind, "fstat"))?.st_size;
    let found = u64::try_from(found).unwrap_or(0);
    if found != bytes(words) {
        return Err(FileError::Size {
            name: kind.name(),
            found,
            said: bytes(words),
        });
    }
    match kind {
        MemoryKind::Board => map::readable(fd.as_fd(), words),
        MemoryKind::Ledger => map::writable(fd.as_fd(), words),
    }
    .map_err(kernel(kind, "mmap"))
}

/// Names a file among all that there are: no two that exist at one time have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
}

/// Which file a descriptor is open on.
///
/// # Errors
/// The kernel's refusal.
pub fn identify(fd: &OwnedFd) -> Result<FileId, Errno> {
    let stat = fstat(fd)?;
    Ok(FileId {
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Who made a file, and how many words it has.
///
/// # Errors
/// The kernel's refusal.
pub fn maker_and_words(fd: &OwnedFd) -> Result<(u32, usize), Errno> {
    let stat = fstat(fd)?;
    let words = usize::try_from(stat.st_size).unwrap_or(0) / size_of::<u64>();
    Ok((stat.st_uid, words))
}

/// Bytes of memory that a file takes now; the rest of it are holes.
///
/// # Errors
/// The kernel's refusal.
pub fn resident_bytes(fd: &OwnedFd) -> Result<u64, Errno> {
    // Blocks are of 512 bytes, whatever the file system says.
    let blocks = fstat(fd)?.st_blocks;
    Ok(u64::try_from(blocks).unwrap_or(0).saturating_mul(512))
}

/// Gives the memory of some words of a file back: they become zeros in every mapping.
///
/// # Errors
/// The kernel's refusal; a file that is sealed against writing refuses.
pub fn give_back(fd: &OwnedFd, words: Range<usize>) -> Result<(), Errno> {
    let length = words.end.saturating_sub(words.start);
    if length == 0 {
        return Ok(());
    }
    let how = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
    fallocate(fd, how, bytes(words.start), bytes(length))
}

fn bytes(words: usize) -> u64 {
    u64::try_from(words).unwrap_or(u64::MAX).saturating_mul(8)
}
