//! A seat on one pair of pages.

use tidegate_segment::clock::{self, Clock};
use tidegate_segment::gate::Gate;

/// A gate and what time it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeatedGate {
    pub(crate) gate: Gate,
    /// What the agent's monotonic clock is ahead of this process's, ns, wrapping; 0 unless one of
    /// the two lives in a time namespace.
    pub(crate) offset_ns: u64,
}

impl Clock for SeatedGate {
    #[inline]
    fn now_ns(&self) -> u64 {
        // The counter knows no namespaces.
        let kernel_ns = || clock::monotonic_ns().wrapping_add(self.offset_ns);
        self.gate.board().time_or(kernel_ns)
    }
}
