//! Tells when the files of a directory changed.

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

use inotify::{Inotify, WatchDescriptor, WatchMask};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::form::is_rule_file;
use super::look::DirectoryLook;

/// Room for some dozens of events.
const BUFFER_BYTES: usize = 4 * 1024;

/// Longest time between two looks. The kernel tells of most changes at once; it says nothing of a link above the
/// directory, of a file behind a link, or of a mount.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Watches a directory by its path, also one that is not there yet or is replaced.
#[derive(Debug)]
pub struct DirectoryWatch {
    directory: PathBuf,
    /// What was seen last.
    seen: DirectoryLook,
    /// Where the kernel gives no watch, looks alone serve.
    inotify: Option<Inotify>,
    armed: Option<(WatchDescriptor, (u64, u64))>,
}

impl DirectoryWatch {
    /// Begins to watch.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let inotify = Inotify::init();
        let inotify = inotify
            .inspect_err(|error| tracing::debug!(event = "rules_polled", %error, "the rules directory cannot be watched; it is polled"));
        let mut watch = Self {
            seen: DirectoryLook::at(&directory, is_rule_file),
            directory,
            inotify: inotify.ok(),
            armed: None,
        };
        watch.arm();
        watch
    }

    /// Looks without waiting. Whether there is another file, or another version of one, than at the last look.
    pub fn look(&mut self) -> bool {
        let look = DirectoryLook::at(&self.directory, is_rule_file);
        let changed = look != self.seen;
        self.seen = look;
        self.arm();
        changed
    }

    /// Waits until there is a change. Run inside a tokio runtime with IO and time enabled.
    ///
    /// # Errors
    /// The runtime cannot wait for the kernel.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            if self.look() {
                return Ok(());
            }
            let told = told(self.inotify.as_ref());
            if let Ok(told) = tokio::time::timeout(LOOK_EVERY, told).await {
                told?;
                self.drain();
            }
        }
    }

    /// Takes the events; what they are of is seen by looking.
    fn drain(&mut self) {
        let mut buffer = [0_u8; BUFFER_BYTES];
        while let Some(inotify) = &mut self.inotify {
            match inotify.read_events(&mut buffer) {
                Ok(_events) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::debug!(event = "rules_polled", %error, "the rules directory cannot be watched; it is polled");
                    self.inotify = None;
                }
            }
        }
    }

    /// Watches the directory that is behind the path now.
    fn arm(&mut self) {
        let now = self.seen.directory();
        if self.armed.as_ref().map(|(_watch, directory)| *directory) == now {
            return;
        }
        let Some(inotify) = &mut self.inotify else {
            return;
        };
        let changes = WatchMask::CREATE
            | WatchMask::MODIFY
            | WatchMask::CLOSE_WRITE
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        let before = self.armed.take();
        let watch = now.and_then(|directory| {
            let watch = inotify.watches().add(&self.directory, changes);
            watch.ok().map(|watch| (watch, directory))
        });
        if let Some((old, _directory)) = before
            && watch.as_ref().is_none_or(|(new, _directory)| *new != old)
        {
            // The kernel has dropped it itself when its directory is gone.
            inotify.watches().remove(old).unwrap_or_default();
        }
        self.armed = watch;
    }
}

/// Waits until the kernel tells of something; for ever where it tells nothing.
async fn told(inotify: Option<&Inotify>) -> io::Result<()> {
    let Some(inotify) = inotify else {
        return std::future::pending().await;
    };
    #[expect(
        deprecated,
        reason = "its safe replacement does not exist; the descriptor is borrowed for longer than it is registered"
    )]
    let ready = AsyncFd::with_interest(inotify.as_fd(), Interest::READABLE)?;
    ready.readable().await?.clear_ready();
    Ok(())
}
