//! A request that a rule holds back until its turn.

use std::time::Duration;

use rustix::thread::{Timespec, nanosleep};
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Step, Verdict, Waiting};
use tidegate_segment::lane;

use crate::permit::Permit;
use crate::refused::Refused;
use crate::session::{Seated, Session};

/// How far a request has come.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and decisions make none"
)]
pub(crate) enum Progress<'a> {
    /// To its end; `None` if the session cannot decide any more.
    Decided(Option<Result<Permit, Refused>>),
    /// To a rule that holds it back.
    Held(Held<'a>),
}

/// A request that waits for its turn on the pages. Dropped before, it puts back what it has taken and
/// counts as refused; its turn is lost.
pub(crate) struct Held<'a> {
    session: &'static Session,
    seated: &'static Seated,
    /// `None` once it went on.
    waiting: Option<Waiting<'a>>,
    /// What of the longest wait is left.
    patience: Duration,
}

impl<'a> Held<'a> {
    /// Takes a step of the gate for what it is to a caller who waits no longer than `patience`.
    pub(crate) fn progress(
        session: &'static Session,
        seated: &'static Seated,
        step: &Step<'a>,
        patience: Duration,
    ) -> Progress<'a> {
        let waiting = match *step {
            Step::Done(verdict) => return Progress::Decided(decided(session, verdict)),
            Step::Wait(waiting) => waiting,
        };
        let mut held = Held {
            session,
            seated,
            waiting: Some(waiting),
            patience,
        };
        match patience.checked_sub(held.left()) {
            Some(rest) => {
                held.patience = rest;
                Progress::Held(held)
            }
            None => Progress::Decided(held.abandon()),
        }
    }

    /// How long it has to wait from now.
    pub(crate) fn left(&self) -> Duration {
        let until_ns = self.waiting.as_ref().map_or(0, Waiting::until_ns);
        Duration::from_nanos(until_ns.saturating_sub(self.seated.now_ns()))
    }

    /// Goes on with it. Too early, it would be admitted before its turn: ask [`Held::left`] first.
    pub(crate) fn resume(mut self) -> Progress<'a> {
        // In a forked process it is the parent's.
        let waiting = self.waiting.take().filter(|_waiting| self.is_ours());
        let Some(waiting) = waiting else {
            return Progress::Decided(None);
        };
        let Self {
            session,
            seated,
            patience,
            ..
        } = self;
        let step = seated.gate.resume(seated, lane::current(), &waiting);
        Self::progress(session, seated, &step, patience)
    }

    /// Sleeps in this thread until it is decided.
    #[cold]
    pub(crate) fn sleep_through(mut self) -> Option<Result<Permit, Refused>> {
        loop {
            loop {
                let left = self.left();
                if left.is_zero() {
                    break;
                }
                pause(left);
            }
            match self.resume() {
                Progress::Decided(answer) => return answer,
                Progress::Held(again) => self = again,
            }
        }
    }

    fn is_ours(&self) -> bool {
        !self.session.forked()
    }

    fn abandon(&mut self) -> Option<Result<Permit, Refused>> {
        let waiting = self.waiting.take().filter(|_waiting| self.is_ours())?;
        let seated = self.seated;
        let verdict = seated.gate.abandon(seated, lane::current(), &waiting);
        decided(self.session, verdict)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _refused = self.abandon();
    }
}

/// What a verdict is to a caller; `None` if seat or slot are not the session's any more.
pub(crate) fn decided(
    session: &'static Session,
    verdict: Verdict,
) -> Option<Result<Permit, Refused>> {
    match verdict {
        Verdict::Admitted(pass) => Some(Ok(Permit::held(session, pass))),
        Verdict::Refused(refusal) => Some(Err(refusal.into())),
        Verdict::Stale => None,
    }
}

/// Sleeps; may end early.
fn pause(time: Duration) {
    let time = Timespec::try_from(time).unwrap_or_default();
    // A signal ends it early, which the caller sees on its clock.
    let _rest = nanosleep(&time);
}
