//! What clones of a client and its resources share.

use super::sync::{Ordering, Word};
use crate::observer::Observing;

/// What clones of a client and its resources share.
#[derive(Debug)]
pub(crate) struct Inner {
    observing: Observing,
    open: Word,
}

impl Inner {
    pub(crate) const fn new(observing: Observing) -> Self {
        Self {
            observing,
            open: Word::new(0),
        }
    }

    pub(crate) const fn observing(&self) -> &Observing {
        &self.observing
    }

    /// Requests admitted without an agent.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn admit_open(&self, name: &str) {
        self.open.count(1);
        self.observing.admitted_open(name);
    }
}
