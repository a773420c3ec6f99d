//! Callers that hold no permit: a check on arrival, and nobody hears of the end.
//!
//! Nothing of theirs is in flight, so the in-flight limit cannot hold them, and what was admitted is
//! all that is known of what was done. Where they are most of the traffic of an overload, their rate is
//! at most the capacity that the scope had while it was healthy, times a pace. A full CPU lowers the
//! pace and one that is not full raises it again.

use super::number::{blend_part, left, real};
use super::sample::Sample;
use super::step::Step;

/// Weight of the newest tick in the mean share.
const WEIGHT: f64 = 0.3;
/// Share of the traffic from which they are most of it.
const MOST: f64 = 0.5;
/// What a tick of full CPU leaves of the pace, and what the others give back.
const SLOWER: f64 = 0.97;
const FASTER: f64 = 1.01;
/// The pace is never under this.
const LEAST_PACE: f64 = 0.1;

/// Callers without permits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unseen {
    /// Mean share of the admitted requests.
    share: f64,
    pace: f64,
    /// Whether the pace holds them now.
    holds: bool,
}

impl Default for Unseen {
    fn default() -> Self {
        Self {
            share: 0.0,
            pace: 1.0,
            holds: false,
        }
    }
}

impl Unseen {
    /// Takes the sample of a tick into account.
    pub(super) fn update(&mut self, sample: &Sample, part: f64) {
        if sample.passed > 0 {
            let share = (real(sample.one_shot) / real(sample.passed)).min(1.0);
            self.share = blend_part(self.share, share, WEIGHT, part);
        }
    }

    /// Requests of theirs that wait for a CPU, as far as is known.
    pub(super) fn waiting(&self, sample: &Sample) -> f64 {
        self.share * sample.waiters.unwrap_or(0.0)
    }

    /// Whether they are most of the traffic.
    pub(super) fn dominate(&self) -> bool {
        self.share > MOST
    }

    /// Moves the pace by what the tick did to the CPU.
    pub(super) fn pace(&mut self, tick: &Step<'_>, overload: bool) {
        self.holds = overload && self.dominate();
        if !self.holds {
            self.pace = 1.0;
        } else if tick.queueing() || tick.busy > tick.settings.tight.grow_under {
            self.pace = (self.pace * left(SLOWER, tick.part)).max(LEAST_PACE);
        } else {
            self.pace = (self.pace * left(FASTER, tick.part)).min(1.0);
        }
    }

    /// The most that they are allowed, requests per second; `capacity` is that of the healthy scope.
    pub(super) fn most(&self, capacity: f64) -> f64 {
        if self.holds && capacity > 0.0 {
            capacity * self.pace
        } else {
            f64::INFINITY
        }
    }
}
