//! A count that several processes share: how many are inside at a time, or have come to a barrier.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Instant;

use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::page::Page;
use tidegate_segment::sync::{Ordering, Word};

use crate::until::SOON;

/// Words of the page: how many are inside now, the most there ever were, and how many came to the
/// barrier.
const WORDS: usize = 3;

/// How many are inside, over all processes that opened it.
#[derive(Debug)]
pub struct SharedCount {
    page: Page,
    file: OwnedFd,
}

impl SharedCount {
    /// A new count.
    ///
    /// # Errors
    /// The kernel gives no memory file.
    pub fn create() -> io::Result<Self> {
        let (page, file) = memfd::create(MemoryKind::Ledger, WORDS).map_err(io::Error::other)?;
        Ok(Self { page, file })
    }

    /// Where other processes open it, for as long as this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Opens the count of another process.
    ///
    /// # Errors
    /// There is none at this path.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = OwnedFd::from(OpenOptions::new().read(true).write(true).open(path)?);
        let page = memfd::open(MemoryKind::Ledger, &file, WORDS).map_err(io::Error::other)?;
        Ok(Self { page, file })
    }

    fn words(&self) -> Option<[&'static Word; 2]> {
        match self.page.words() {
            [now, most, _came] => Some([now, most]),
            _other => None,
        }
    }

    /// One more is inside.
    pub fn enter(&self) {
        if let Some([now, most]) = self.words() {
            let inside = now.change(Ordering::SeqCst, |count| count.wrapping_add(1)) + 1;
            most.change(Ordering::SeqCst, |seen| seen.max(inside));
        }
    }

    /// One less is inside.
    pub fn leave(&self) {
        if let Some([now, _most]) = self.words() {
            now.change(Ordering::SeqCst, |count| count.wrapping_sub(1));
        }
    }

    /// Waits until as many have come as there are `parties`, the caller among them; all go on at one
    /// moment.
    ///
    /// # Errors
    /// The others do not come soon.
    pub fn meet(&self, parties: u64) -> Result<(), String> {
        let [_now, _most, came] = self.page.words() else {
            return Ok(());
        };
        came.change(Ordering::SeqCst, |count| count.wrapping_add(1));
        let begin = Instant::now();
        while came.load(Ordering::SeqCst) < parties {
            if begin.elapsed() > SOON {
                return Err(format!("{parties} do not meet within {SOON:?}"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// The most that were ever inside at a time.
    pub fn most(&self) -> u64 {
        self.words()
            .map_or(0, |[_now, most]| most.load(Ordering::SeqCst))
    }
}
