//! An admitted request.

use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_abi::message::TOKEN;
use tidegate_segment::gate::{Pass, Ticket};

use crate::session::Session;

/// An admitted request in flight. It may move to another thread or into a future.
///
/// Say how the request ended with [`Permit::ok`] or [`Permit::error`]; a permit that is dropped
/// counts as [`Permit::ignore`].
#[derive(Debug)]
#[must_use = "the request is in flight until its permit is given back"]
pub struct Permit {
    held: Held,
}

/// A permit goes back to the session it came from; if that is over, nothing happens.
#[derive(Debug)]
enum Held {
    /// Nothing is to be given back.
    Nothing,
    /// On the pages, by the express way.
    Express {
        session: &'static Session,
        ticket: Ticket,
    },
    /// On the pages.
    Seated {
        session: &'static Session,
        pass: Pass,
    },
    /// By the agent, under a token.
    Asked {
        session: &'static Session,
        token: [u8; TOKEN],
        waited: Duration,
    },
}

impl Permit {
    /// A permit that counts nowhere: the request was admitted without an agent.
    pub(crate) const fn open() -> Self {
        Self {
            held: Held::Nothing,
        }
    }

    #[inline]
    pub(crate) const fn ticket(session: &'static Session, ticket: Ticket) -> Self {
        Self {
            held: Held::Express { session, ticket },
        }
    }

    pub(crate) const fn held(session: &'static Session, pass: Pass) -> Self {
        Self {
            held: Held::Seated { session, pass },
        }
    }

    pub(crate) const fn asked(
        session: &'static Session,
        token: [u8; TOKEN],
        waited: Duration,
    ) -> Self {
        Self {
            held: Held::Asked {
                session,
                token,
                waited,
            },
        }
    }

    /// Whether the rules of an agent were asked; `false` if the request was admitted without them.
    pub const fn decided(&self) -> bool {
        !matches!(self.held, Held::Nothing)
    }

    /// How long the rules held the request back before it was admitted.
    pub fn waited(&self) -> Duration {
        match &self.held {
            Held::Nothing | Held::Express { .. } => Duration::ZERO,
            Held::Seated { pass, .. } => Duration::from_nanos(pass.waited_ns),
            Held::Asked { waited, .. } => *waited,
        }
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
        match &self.held {
            Held::Nothing => {}
            Held::Express { session, ticket } => session.give_back(ticket, outcome),
            Held::Seated { session, pass } => session.exit(pass, outcome),
            Held::Asked { session, token, .. } => session.exit_asked(*token, outcome),
        }
        self.held = Held::Nothing;
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.end(Outcome::Ignore);
    }
}
