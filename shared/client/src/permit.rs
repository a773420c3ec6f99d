//! An admitted request.

use std::fmt;
use std::mem::ManuallyDrop;
use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_segment::gate::Ticket;

use crate::admitted::Admitted;
use crate::session::Session;

/// An admitted request in flight. It may move to another thread or into a future.
///
/// Say how the request ended with [`Permit::ok`], [`Permit::error`] or [`Permit::record`]; a permit that is dropped
/// counts as [`Permit::ignore`], so an early return with `?` hides a failure from breakers. Choose with
/// [`Permit::on_drop`], or let [`Resource::run`](crate::Resource::run) say it.
///
/// A permit that is kept over a fork does nothing in the child. One that is kept over a restart of the agent goes back
/// to the seat it came from, if that was kept. One that is never dropped (`mem::forget`, a process that exits) stays in
/// flight until the process ends.
#[must_use = "the request is in flight until its permit is given back"]
pub struct Permit {
    /// Where it goes back to; if that is over, nothing happens. `None`: nothing is to be given back.
    session: Option<&'static Session>,
    /// A ticket; with the mark [`LONG`], the second is the number of what the session keeps for it.
    words: [u64; 3],
}

/// Marks in the bits that a ticket leaves free: the first word is not a ticket's.
const LONG: u64 = 1 << 63;
/// Dropped, the request failed.
const DROPS_AS_ERROR: u64 = 1 << 62;
/// Dropped, the request did its work.
const DROPS_AS_OK: u64 = 1 << 61;
const MARKS: u64 = LONG | DROPS_AS_ERROR | DROPS_AS_OK;
const _: () = assert!(
    MARKS & Ticket::FREE_BITS == MARKS,
    "a ticket needs the bits"
);
const _: () = assert!(size_of::<Permit>() == 32, "a permit fits into registers");

impl Permit {
    /// A permit that counts nowhere: the request was admitted without an agent.
    pub(crate) const fn open() -> Self {
        Self {
            session: None,
            words: [0; 3],
        }
    }

    #[inline(always)]
    pub(crate) const fn ticket(session: &'static Session, ticket: Ticket) -> Self {
        Self {
            session: Some(session),
            words: ticket.words(),
        }
    }

    /// A permit for what a session admitted.
    pub(crate) fn of(session: &'static Session, admitted: Admitted) -> Self {
        if let Admitted::Ticket(ticket) = admitted {
            return Self::ticket(session, ticket);
        }
        let Some(number) = session.life().long_permits().keep(admitted) else {
            // Millions are in flight: it goes on, and counts as over.
            end(session, &admitted, Outcome::Ignore);
            return Self::open();
        };
        Self {
            session: Some(session),
            words: [LONG, number.into(), 0],
        }
    }

    /// Whether the rules of an agent were asked; `false` if the request was admitted without them.
    pub const fn decided(&self) -> bool {
        self.session.is_some()
    }

    /// How long the rules held the request back before it was admitted.
    pub fn waited(&self) -> Duration {
        match self.long() {
            Some(Admitted::Pass(pass)) => Duration::from_nanos(pass.waited_ns),
            Some(Admitted::Asked { waited, .. }) => waited,
            Some(Admitted::Ticket(_)) | None => Duration::ZERO,
        }
    }

    /// The request did its work; its response time counts.
    #[inline(always)]
    pub fn ok(self) {
        // There is nothing left for the drop to do.
        ManuallyDrop::new(self).end(Outcome::Ok);
    }

    /// The request failed; its response time does not count.
    #[inline(always)]
    pub fn error(self) {
        ManuallyDrop::new(self).end(Outcome::Error);
    }

    /// The request did its work if its result is `Ok`, and failed otherwise.
    #[inline]
    pub fn record<T, E>(self, result: &Result<T, E>) {
        match result {
            Ok(_) => self.ok(),
            Err(_) => self.error(),
        }
    }

    /// What it counts as where it is dropped: by an early return, a panic, or a task that is cancelled.
    /// [`Outcome::Ignore`] by default.
    #[inline]
    pub const fn on_drop(mut self, outcome: Outcome) -> Self {
        self.set_on_drop(outcome);
        self
    }

    #[inline]
    pub(crate) const fn set_on_drop(&mut self, outcome: Outcome) {
        let mark = match outcome {
            Outcome::Ok => DROPS_AS_OK,
            Outcome::Error => DROPS_AS_ERROR,
            Outcome::Ignore => 0,
        };
        let [marks, ..] = &mut self.words;
        *marks = *marks & !(DROPS_AS_OK | DROPS_AS_ERROR) | mark;
    }

    /// The request ended so.
    #[cfg(feature = "tower")]
    pub(crate) fn end_as(self, outcome: Outcome) {
        ManuallyDrop::new(self).end(outcome);
    }

    /// Nothing is known of how the request ended.
    #[inline]
    pub fn ignore(self) {
        ManuallyDrop::new(self).end(Outcome::Ignore);
    }

    /// What its session keeps for it.
    fn long(&self) -> Option<Admitted> {
        let [marks, number, _rest] = self.words;
        let session = self.session.filter(|_session| marks & LONG != 0)?;
        session
            .life()
            .long_permits()
            .look(u32::try_from(number).ok()?)
    }

    #[inline(always)]
    fn end(&mut self, outcome: Outcome) {
        let Some(session) = self.session.take() else {
            return;
        };
        let [marks, number, _rest] = self.words;
        if marks & LONG == 0 {
            session.give_back(&Ticket::of_words(self.words), outcome);
        } else {
            end_long(session, number, outcome);
        }
    }
}

#[cold]
#[inline(never)]
fn end_long(session: &'static Session, number: u64, outcome: Outcome) {
    // In a forked process the table is a copy of the parent's, in whatever state that was.
    if session.forked() {
        return;
    }
    let number = u32::try_from(number).ok();
    let taken = number.and_then(|number| session.life().long_permits().take(number));
    if let Some(admitted) = taken {
        end(session, &admitted, outcome);
    }
}

fn end(session: &Session, admitted: &Admitted, outcome: Outcome) {
    match admitted {
        Admitted::Ticket(ticket) => session.give_back(ticket, outcome),
        Admitted::Pass(pass) => session.exit(pass, outcome),
        Admitted::Asked { token, .. } => session.exit_asked(*token, outcome),
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        let [marks, ..] = self.words;
        let outcome = match marks & (DROPS_AS_OK | DROPS_AS_ERROR) {
            0 => Outcome::Ignore,
            DROPS_AS_OK => Outcome::Ok,
            _error => Outcome::Error,
        };
        self.end(outcome);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("decided", &self.decided())
            .finish_non_exhaustive()
    }
}
