//! An admitted request.

use std::time::Duration;

use tidegate_abi::decision::Outcome;

/// An admitted request in flight. Without an agent it counts nowhere.
#[derive(Debug)]
#[must_use = "the request is in flight until its permit is given back"]
pub struct Permit(());

impl Permit {
    pub(crate) const fn open() -> Self {
        Self(())
    }

    /// Whether the rules of an agent were asked: never, on this system.
    pub const fn decided(&self) -> bool {
        false
    }

    /// How long the rules held the request back before it was admitted: not at all.
    pub const fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// The request did its work.
    pub fn ok(self) {}

    /// The request failed.
    pub fn error(self) {}

    /// The request did its work if its result is `Ok`, and failed otherwise.
    pub fn record<T, E>(self, _result: &Result<T, E>) {}

    /// What it counts as where it is dropped.
    pub const fn on_drop(self, _outcome: Outcome) -> Self {
        self
    }

    pub(crate) const fn set_on_drop(&mut self, _outcome: Outcome) {}

    /// The request ended so.
    #[cfg(feature = "tower")]
    pub(crate) fn end_as(self, _outcome: Outcome) {}

    /// Nothing is known of how the request ended.
    pub fn ignore(self) {}
}
