//! A count that several processes share, to see how many are inside at a time.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use tidegate_segment::os::memfd::{self, Kind};
use tidegate_segment::page::Page;
use tidegate_segment::sync::{Ordering, Word};

/// Words of the page: how many are inside now, and the most there ever were.
const WORDS: usize = 2;

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
        let (page, file) = memfd::create(Kind::Ledger, WORDS).map_err(io::Error::other)?;
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
        let page = memfd::open(Kind::Ledger, &file, WORDS).map_err(io::Error::other)?;
        Ok(Self { page, file })
    }

    fn words(&self) -> Option<(&'static Word, &'static Word)> {
        match self.page.words() {
            [now, most] => Some((now, most)),
            _other => None,
        }
    }

    /// One more is inside.
    pub fn enter(&self) {
        if let Some((now, most)) = self.words() {
            let inside = now.change(Ordering::SeqCst, |count| count.wrapping_add(1)) + 1;
            most.change(Ordering::SeqCst, |seen| seen.max(inside));
        }
    }

    /// One less is inside.
    pub fn leave(&self) {
        if let Some((now, _most)) = self.words() {
            now.change(Ordering::SeqCst, |count| count.wrapping_sub(1));
        }
    }

    /// The most that were ever inside at a time.
    pub fn most(&self) -> u64 {
        self.words()
            .map_or(0, |(_now, most)| most.load(Ordering::SeqCst))
    }
}
