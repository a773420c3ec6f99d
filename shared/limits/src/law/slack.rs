//! Slack feedback: what the tight limit needs beyond the model.
//!
//! A service that waits for others keeps fewer requests on the CPU than the model thinks. The sign
//! is a CPU that is not full in a tick that refused; then the limit grows, unless a task waits for
//! each CPU anyway: then others use what is missing, or it is measured a little low, and more
//! requests would only wait. It shrinks again while the CPU is full or tasks queue for it, and does not grow while
//! nothing is done: those the service waits for may be down, and more requests would only wait for them.

use super::estimate::Limits;
use super::number::{blend_part, left};
use super::settings::TightSettings;

/// Extra requests in the tight limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Slack {
    extra: f64,
    busy: f64,
}

/// A tick in overload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pressed {
    /// Busy share of the CPUs.
    pub busy: f64,
    /// Whether tasks queued for a CPU; `None` is not measured.
    pub queueing: Option<bool>,
    /// Whether a task waited for each CPU.
    pub waiting: bool,
    /// Whether requests were refused.
    pub refused: bool,
    /// Whether work was done.
    pub done: bool,
    /// What of a whole tick it is.
    pub part: f64,
}

impl Slack {
    /// Overload begins: half of what was learned last time is believed.
    pub(super) fn enter(&mut self) {
        self.extra *= 0.5;
        self.busy = 1.0;
    }

    /// Takes a tick in overload into account.
    pub(super) fn update(&mut self, tick: &Pressed, limits: &Limits, settings: &TightSettings) {
        self.busy = blend_part(self.busy, tick.busy, settings.busy_weight, tick.part);
        if tick.queueing == Some(true) {
            self.extra *= left(settings.queue_shrink, tick.part);
        } else if tick.refused && tick.done && !tick.waiting && self.busy < settings.grow_under {
            self.extra += (settings.grow * limits.tight).max(1.0) * tick.part;
        } else if self.busy > settings.shrink_over {
            self.extra *= left(settings.shrink, tick.part);
        }
        let reach = if tick.queueing == Some(false) {
            settings.reach.max(1.0)
        } else {
            1.0
        };
        self.extra = self.extra.clamp(0.0, limits.entry * reach);
    }

    /// Sets them, where a trial says how many.
    pub(super) fn set(&mut self, extra: f64, limits: &Limits, settings: &TightSettings) {
        self.extra = extra.clamp(0.0, limits.entry * settings.reach.max(1.0));
    }

    /// Extra requests.
    pub(super) fn extra(&self) -> f64 {
        self.extra
    }
}
