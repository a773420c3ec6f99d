//! An admitted request.

use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_segment::gate::Pass;

use crate::session::Session;

/// An admitted request in flight. It may move to another thread or into a future.
///
/// Say how the request ended with [`Permit::ok`] or [`Permit::error`]; a permit that is dropped
/// counts as [`Permit::ignore`].
#[derive(Debug)]
#[must_use = "the request is in flight until its permit is given back"]
pub struct Permit {
    held: Option<Held>,
}

/// A permit goes back to the session it came from; if that is over, nothing happens.
#[derive(Debug)]
struct Held {
    session: &'static Session,
    pass: Pass,
}

impl Permit {
    /// A permit that counts nowhere: the request was admitted without an agent.
    pub(crate) const fn open() -> Self {
        Self { held: None }
    }

    pub(crate) const fn held(session: &'static Session, pass: Pass) -> Self {
        Self {
            held: Some(Held { session, pass }),
        }
    }

    /// Whether pages of an agent were asked; `false` if the request was admitted without one.
    pub const fn decided(&self) -> bool {
        self.held.is_some()
    }

    /// How long the rules held the request back before it was admitted.
    pub fn waited(&self) -> Duration {
        let waited_ns = self.held.as_ref().map_or(0, |held| held.pass.waited_ns);
        Duration::from_nanos(waited_ns)
    }

    /// The request did its work; its response time counts.
    #[inline]
    pub fn ok(mut self) {
        self.end(Outcome::Ok);
    }

    /// The request failed; its response time does not count.
    #[inline]
    pub fn error(mut self) {
        self.end(Outcome::Error);
    }

    /// Nothing is known of how the request ended.
    #[inline]
    pub fn ignore(self) {
        drop(self);
    }

    #[inline]
    fn end(&mut self, outcome: Outcome) {
        if let Some(Held { session, pass }) = self.held.take() {
            session.exit(pass, outcome);
        }
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.end(Outcome::Ignore);
    }
}
