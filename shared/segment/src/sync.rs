//! The one door to atomics: the real ones, or loom's when the interleavings are checked.
#![cfg_attr(
    not(loom),
    expect(
        clippy::disallowed_types,
        reason = "this is the door that the ban on raw atomics points to"
    )
)]

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicPtr, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// An atomic word of a page. Nothing else is ever on a page.
#[derive(Debug)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// A word in private memory.
    #[cfg(not(loom))]
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    /// A word in private memory.
    #[cfg(loom)]
    pub fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// Reads.
    #[inline(always)]
    pub fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    /// Writes.
    #[inline(always)]
    pub fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    /// Adds, wrapping, relaxed: for free-running counts that several threads write.
    #[inline(always)]
    pub fn count(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Replaces `seen` by `next`; on failure, also a spurious one, gives what is there.
    ///
    /// # Errors
    /// The value found.
    #[inline(always)]
    pub fn exchange_weak(
        &self,
        seen: u64,
        next: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange_weak(seen, next, success, failure)
    }

    /// Replaces `seen` by `next`; on failure gives what is there.
    ///
    /// # Errors
    /// The value found.
    #[inline(always)]
    pub fn exchange(
        &self,
        seen: u64,
        next: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(seen, next, success, failure)
    }

    /// Replaces the value by a function of it and returns what was there before.
    #[inline(always)]
    pub fn change(&self, success: Ordering, next: impl Fn(u64) -> u64) -> u64 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            // Lock-free: a failed exchange means that another thread of this process got on, or that
            // the hardware asks for another try.
            match self
                .0
                .compare_exchange_weak(seen, next(seen), success, Ordering::Relaxed)
            {
                Ok(before) => return before,
                Err(found) => seen = found,
            }
        }
    }
}

/// How often a step is tried against other writers of its word. Each failed try means that another
/// caller got on; who loses that often is told to come again.
const STEPS: u32 = 256;

impl Word {
    /// Runs a pure step `word → (answer, next word)` and stores its result as one.
    ///
    /// `None` if other writers won every try. Relaxed: the word carries all there is.
    #[inline(always)]
    pub fn step<T>(&self, mut step: impl FnMut(u64) -> (T, u64)) -> Option<T> {
        let mut seen = self.load(Ordering::Relaxed);
        for _try in 0..STEPS {
            let (answer, next) = step(seen);
            if next == seen {
                return Some(answer);
            }
            match self.exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_before) => return Some(answer),
                Err(found) => seen = found,
            }
        }
        None
    }
}

impl Word {
    /// Replaces the value by a function of it and gives the new one; `None`, with nothing changed, if
    /// the function gives nothing or other writers won every try. Relaxed, as for [`Word::step`].
    #[inline(always)]
    pub fn advance(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut seen = self.load(Ordering::Relaxed);
        for _try in 0..STEPS {
            let wanted = next(seen)?;
            match self.exchange_weak(seen, wanted, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_before) => return Some(wanted),
                Err(found) => seen = found,
            }
        }
        None
    }
}

/// Reads word `field` of a record, relaxed; 0 if there is no such word.
#[inline(always)]
pub(crate) fn peek(record: &[Word], field: usize) -> u64 {
    record
        .get(field)
        .map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Writes word `field` of a record, relaxed.
#[inline(always)]
pub(crate) fn put(record: &[Word], field: usize, value: u64) {
    if let Some(word) = record.get(field) {
        word.store(value, Ordering::Relaxed);
    }
}
