//! The names in a directory, without allocating.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{self, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom};

use super::NoValue;

/// Room for some dozens of entries per system call.
const BUFFER_BYTES: usize = 4096;

/// A directory that was there when it was opened.
#[derive(Debug)]
pub(crate) struct OpenDirectory(OwnedFd);

impl OpenDirectory {
    /// Opens a directory below this one, which is the root of every path and link on the way.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub(crate) fn open_directory(&self, below: &Path) -> Result<Self, NoValue> {
        self.open_below(below, OFlags::RDONLY | OFlags::DIRECTORY)
            .map(Self)
    }

    /// Opens a regular file below this directory, which is the root of every path on the way. A link in its place is
    /// not followed. Anything else is not even opened: that alone sets off some devices, and wakes who waits at a pipe.
    ///
    /// # Errors
    /// The operating system's refusal; [`NoValue::Malformed`] for anything but a regular file.
    pub(crate) fn open_file(&self, below: &Path) -> Result<File, NoValue> {
        let found = self.open_below(below, OFlags::PATH | OFlags::NOFOLLOW)?;
        let stat = fs::fstat(&found).map_err(|errno| NoValue::Os(errno.raw_os_error()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(NoValue::Malformed(
                "a link, a pipe or a device in its place",
            ));
        }
        open_found(&found)
    }

    /// Begins with the first name again.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub(crate) fn rewind(&self) -> Result<(), NoValue> {
        let sought = fs::seek(&self.0, SeekFrom::Start(0));
        sought
            .map(|_start| ())
            .map_err(|errno| NoValue::Os(errno.raw_os_error()))
    }

    /// How many directories are in it, as far as the file system counts them in its links.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub(crate) fn directories(&self) -> Result<u64, NoValue> {
        let stat = fs::fstat(&self.0).map_err(|errno| NoValue::Os(errno.raw_os_error()))?;
        Ok(directories_by_links(stat.st_nlink))
    }

    fn open_below(&self, below: &Path, flags: OFlags) -> Result<OwnedFd, NoValue> {
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = fs::openat2(
            &self.0,
            below,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            inside,
        );
        opened.map_err(|errno| NoValue::Os(errno.raw_os_error()))
    }
}

/// How many directories are in one with so many links, a number that is wider on some machines than on others: one link
/// is its name, one its own `.`; each directory in it has a `..`.
fn directories_by_links(links: impl Into<u64>) -> u64 {
    links.into().saturating_sub(2)
}

/// Opens for reading what was found, whatever stands at its path by now.
fn open_found(found: &OwnedFd) -> Result<File, NoValue> {
    let mut path = [0; 32];
    let mut rest = path.as_mut_slice();
    // A number has at most ten digits: it fits.
    let _written = write!(rest, "/proc/self/fd/{}", found.as_raw_fd());
    let left = rest.len();
    let written = path
        .get(..path.len().saturating_sub(left))
        .unwrap_or_default();
    File::open(OsStr::from_bytes(written)).map_err(|error| NoValue::of(&error))
}

/// Opens a directory to read its names.
///
/// # Errors
/// The operating system's refusal.
pub(crate) fn open(dir: &Path) -> Result<OpenDirectory, NoValue> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = fs::open(dir, flags, Mode::empty());
    opened
        .map(OpenDirectory)
        .map_err(|errno| NoValue::Os(errno.raw_os_error()))
}

/// Opens a regular file below a directory that is the root of every path and link on the way.
///
/// # Errors
/// As [`OpenDirectory::open_file`].
pub(crate) fn open_below(root: &Path, below: &Path) -> Result<File, NoValue> {
    open(root)?.open_file(below)
}

/// Calls `visit` with each name but `.` and `..`, in the order of the kernel.
///
/// # Errors
/// The operating system's refusal; some names were visited before it.
pub(crate) fn each_name(dir: &OpenDirectory, visit: &mut dyn FnMut(&[u8])) -> Result<(), NoValue> {
    each_entry(dir, &mut |name, _kind| {
        visit(name);
        ControlFlow::Continue(())
    })
}

/// Calls `visit` with the name of each directory in it but `.` and `..`.
///
/// # Errors
/// As [`each_name`].
pub(crate) fn each_directory(
    dir: &OpenDirectory,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), NoValue> {
    each_entry(dir, &mut |name, kind| {
        if may_be_directory(kind) {
            visit(name);
        }
        ControlFlow::Continue(())
    })
}

/// Calls `visit` with the name of each directory among the first `most` names.
///
/// # Errors
/// As [`each_name`]; [`NoValue::Crowded`] if there are more names.
pub(crate) fn each_directory_of(
    most: usize,
    dir: &OpenDirectory,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), NoValue> {
    let mut left = most;
    let mut is_crowded = false;
    each_entry(dir, &mut |name, kind| {
        let Some(less) = left.checked_sub(1) else {
            is_crowded = true;
            return ControlFlow::Break(());
        };
        left = less;
        if may_be_directory(kind) {
            visit(name);
        }
        ControlFlow::Continue(())
    })?;
    if is_crowded {
        return Err(NoValue::Crowded);
    }
    Ok(())
}

/// Some file systems do not tell what it is; whoever opens it then will see.
fn may_be_directory(kind: FileType) -> bool {
    matches!(kind, FileType::Directory | FileType::Unknown)
}

fn each_entry(
    dir: &OpenDirectory,
    visit: &mut dyn FnMut(&[u8], FileType) -> ControlFlow<()>,
) -> Result<(), NoValue> {
    let mut room = [const { MaybeUninit::uninit() }; BUFFER_BYTES];
    let mut entries = RawDir::new(&dir.0, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|errno| NoValue::Os(errno.raw_os_error()))?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && visit(name, entry.file_type()).is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_visited_once() {
        let dir = tempfile::tempdir().unwrap();
        let wanted: Vec<String> = (0..500)
            .map(|number| format!("group-{number:04}"))
            .collect();
        for name in &wanted {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut names = Vec::new();
        let mut visit = |name: &[u8]| names.push(String::from_utf8(name.to_vec()).unwrap());
        each_name(&open(dir.path()).unwrap(), &mut visit).unwrap();
        names.sort();
        assert_eq!(names, wanted);
        let open = open(dir.path()).unwrap();
        for _time in 0..2 {
            let mut count = 0;
            open.rewind().unwrap();
            each_directory(&open, &mut |_name| count += 1).unwrap();
            assert_eq!(count, wanted.len());
        }
    }

    #[test]
    fn more_names_than_are_looked_at_are_told_as_such() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let visited = |most| {
            let (open, mut count) = (open(dir.path()).unwrap(), 0);
            let seen = each_directory_of(most, &open, &mut |_name| count += 1);
            (count, seen)
        };
        assert_eq!(visited(3), (3, Ok(())));
        assert_eq!(visited(2), (2, Err(NoValue::Crowded)));
    }

    #[test]
    fn only_a_regular_file_is_opened_for_reading() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "content").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        fs::mknodat(
            fs::CWD,
            at("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let read = |name: &str| {
            let file = open_below(dir.path(), Path::new(name))?;
            Ok(std::io::read_to_string(file).unwrap())
        };
        assert_eq!(read("file").as_deref(), Ok("content"));
        let refused = Err(NoValue::Malformed(
            "a link, a pipe or a device in its place",
        ));
        assert_eq!([read("link"), read("pipe")], [refused.clone(), refused]);
        assert_eq!(read("absent"), Err(NoValue::Os(libc::ENOENT)));
    }

    #[test]
    fn a_file_or_nothing_is_a_fault_with_its_errno() {
        let dir = tempfile::tempdir().unwrap();
        let fault = |name: &str| open(&dir.path().join(name)).err();
        assert_eq!(fault("absent"), Some(NoValue::Os(libc::ENOENT)));
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(fault("file"), Some(NoValue::Os(libc::ENOTDIR)));
    }
}
