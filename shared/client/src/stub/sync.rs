//! A word that threads share.
#![expect(
    clippy::disallowed_types,
    reason = "the package with the door to atomics is for Linux alone"
)]

pub(crate) use std::sync::atomic::Ordering;

use std::sync::atomic::AtomicU64;

/// A count.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    /// Adds, wrapping.
    pub(crate) fn count(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }
}
