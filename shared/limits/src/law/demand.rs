//! Mean demand on the CPUs, as a share of the capacity.
//!
//! Shedding lowers the CPU, so CPU alone cannot tell when overload has ended: what was refused
//! counts as demand too. `U · (1 + F/X)`, U read as 1 while tasks queue for a CPU. Where that can be told and they do
//! not, U is the own share: work of others that fills a CPU, and leaves it when the scope needs it, is no
//! demand on the scope. Where requests are refused and nothing is done, no CPU share tells of the demand: it is
//! read as more than there is.

use super::number::{blend_part, real};
use super::step::Step;

/// Mean demand.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Demand(f64);

impl Demand {
    /// Overload begins: the mean of the calm ticks before must not end it while it is young.
    pub(super) fn enter(&mut self) {
        self.0 = self.0.max(1.0);
    }

    /// Takes a tick into account.
    pub(super) fn update(&mut self, tick: &Step<'_>) {
        let settings = &tick.settings.release;
        let used = match (tick.queueing(), tick.sample.waiters, tick.sample.own) {
            (true, _, _) => 1.0,
            (false, Some(_few), Some(own)) => own,
            (false, _, _) => tick.busy,
        };
        let stalled = tick.sample.shed > 0 && tick.sample.done() <= 0.0;
        let refused = real(tick.sample.shed) / tick.sample.done().max(1.0);
        let demand = if stalled {
            settings.most
        } else {
            (used * (1.0 + refused)).min(settings.most)
        };
        self.0 = blend_part(self.0, demand, settings.weight, tick.part);
    }

    /// The mean, 1 is the capacity.
    pub(super) fn share(self) -> f64 {
        self.0
    }
}
