//! Tells when the files of a directory changed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use inotify::{Event, EventMask, Inotify, WatchDescriptor, WatchMask};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Room for some dozens of events.
const BUFFER_BYTES: usize = 4 * 1024;

/// Watches a directory, also one that is not there yet or is replaced.
///
/// A file counts as changed when it is closed after writing, moved or removed, so a file that is
/// being written is not read half.
#[derive(Debug)]
pub struct DirectoryWatch {
    directory: PathBuf,
    inotify: Inotify,
    armed: Armed,
}

/// What the kernel watches.
#[derive(Debug, PartialEq, Eq)]
enum Armed {
    /// The directory.
    Directory(WatchDescriptor),
    /// The nearest directory above it that is there.
    Above(WatchDescriptor),
}

impl DirectoryWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The kernel gives no watch, most often because the user has too many.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        let mut inotify = Inotify::init()?;
        let armed = arm(&mut inotify, &directory)?;
        Ok(Self {
            directory,
            inotify,
            armed,
        })
    }

    /// Takes the events that are there, without waiting. Whether the rules are to be read again.
    ///
    /// # Errors
    /// The kernel refuses to read or to watch on.
    pub fn drain(&mut self) -> io::Result<bool> {
        let mut buffer = [0_u8; BUFFER_BYTES];
        let mut changed = false;
        let mut lost = false;
        loop {
            let events = match self.inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            for event in events {
                changed |= matters(&self.directory, &event);
                lost |= event
                    .mask
                    .intersects(EventMask::IGNORED | EventMask::DELETE_SELF | EventMask::MOVE_SELF);
            }
        }
        if lost || (changed && matches!(self.armed, Armed::Above(_))) {
            self.rearm()?;
        }
        Ok(changed || lost)
    }

    /// Waits until the rules are to be read again. Run inside a tokio runtime with IO enabled.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            {
                #[expect(
                    deprecated,
                    reason = "its safe replacement does not exist; the descriptor is borrowed \
                              for longer than it is registered"
                )]
                let ready = AsyncFd::with_interest(self.inotify.as_fd(), Interest::READABLE)?;
                let mut guard = ready.readable().await?;
                guard.clear_ready();
            }
            if self.drain()? {
                return Ok(());
            }
        }
    }

    fn rearm(&mut self) -> io::Result<()> {
        let (Armed::Directory(old) | Armed::Above(old)) = &self.armed;
        let old = old.clone();
        self.armed = arm(&mut self.inotify, &self.directory)?;
        let (Armed::Directory(new) | Armed::Above(new)) = &self.armed;
        if *new != old {
            // The kernel has dropped the old one itself when its directory is gone.
            self.inotify.watches().remove(old).unwrap_or_default();
        }
        Ok(())
    }
}

impl AsFd for DirectoryWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

fn arm(inotify: &mut Inotify, directory: &Path) -> io::Result<Armed> {
    let changes = WatchMask::CREATE
        | WatchMask::CLOSE_WRITE
        | WatchMask::MOVED_TO
        | WatchMask::MOVED_FROM
        | WatchMask::DELETE
        | WatchMask::DELETE_SELF
        | WatchMask::MOVE_SELF
        | WatchMask::ONLYDIR;
    let above = directory.ancestors().skip(1);
    for (place, own) in std::iter::once((directory, true)).chain(above.map(|up| (up, false))) {
        let place = if place.as_os_str().is_empty() {
            Path::new(".")
        } else {
            place
        };
        match inotify.watches().add(place, changes) {
            Ok(watch) if own => return Ok(Armed::Directory(watch)),
            Ok(watch) => return Ok(Armed::Above(watch)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// A new file is news only when it is closed; a new link or directory at once.
fn matters(directory: &Path, event: &Event<&std::ffi::OsStr>) -> bool {
    if event.mask.contains(EventMask::Q_OVERFLOW) {
        return true;
    }
    if !event.mask.contains(EventMask::CREATE) || event.mask.contains(EventMask::ISDIR) {
        return true;
    }
    let path = directory.join(event.name.unwrap_or_default());
    path.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
}
