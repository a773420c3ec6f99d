//! What the service has done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Counts since the service began.
#[derive(Debug, Default)]
pub(super) struct Counts {
    admitted: AtomicUsize,
    refused: AtomicUsize,
    transitions: AtomicUsize,
}

/// The same, as the lab reads them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stats {
    /// Requests that the guard admitted.
    pub admitted: usize,
    /// Requests that it refused.
    pub refused: usize,
    /// Changes of a rival law between refusing and not, seen once a tick.
    pub transitions: usize,
    /// CPU time of the process, seconds.
    pub cpu_s: f64,
}

impl Counts {
    pub(super) fn admitted(&self) {
        count(&self.admitted);
    }

    pub(super) fn refused(&self) {
        count(&self.refused);
    }

    pub(super) fn changed(&self) {
        count(&self.transitions);
    }

    pub(super) fn refused_so_far(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn stats(&self, cpu: Duration) -> Stats {
        Stats {
            admitted: self.admitted.load(Ordering::Relaxed),
            refused: self.refused_so_far(),
            transitions: self.transitions.load(Ordering::Relaxed),
            cpu_s: cpu.as_secs_f64(),
        }
    }
}

/// Relaxed: figures for people, read after the fact.
fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}
