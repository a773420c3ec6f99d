//! How long a tick is, and what shorter ones count for.

use super::number::real;
use crate::healthy_run;

/// Length of a tick that is neither early nor late, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickLength(pub u64);

impl Default for TickLength {
    fn default() -> Self {
        Self(healthy_run::TICK_NS)
    }
}

impl TickLength {
    /// What of a whole tick one of `tick_ns` is: the weight of what it says. A late one says no more than a whole one.
    pub(super) fn part(self, tick_ns: u64) -> f64 {
        if tick_ns >= self.0 {
            1.0
        } else {
            real(tick_ns) / real(self.0)
        }
    }

    /// So many ticks, ns, to the nearest: half a tick less.
    pub(super) fn nearly(self, ticks: u32) -> u64 {
        let all = u64::from(ticks).saturating_mul(self.0);
        all.saturating_sub(self.0 / 2)
    }
}
