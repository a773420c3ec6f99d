//! A session: one seat on one pair of pages, or the time before there is one.

use std::time::Duration;

use rustix::thread::{Timespec, nanosleep};
use tidegate_abi::decision::Outcome;
use tidegate_segment::board::Slot;
use tidegate_segment::clock::{self, Clock};
use tidegate_segment::gate::{Gate, Pass, Request, Step, Verdict, Waiting};
use tidegate_segment::lane;
use tidegate_segment::os::fork::Token;

use crate::entry::{Entry, SessionNumber};
use crate::life::Life;
use crate::permit::Permit;
use crate::refused::Refused;

/// What a decision needs, replaced as a whole when the client connects anew.
#[derive(Debug)]
pub(crate) struct Session {
    /// Copied out of the life, because each decision looks at it.
    token: Token,
    number: SessionNumber,
    seated: Option<Seated>,
    life: &'static Life,
}

/// A gate and what time it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seated {
    pub(crate) gate: Gate,
    /// What the agent's monotonic clock is ahead of this process's, ns, wrapping; 0 unless one of
    /// the two lives in a time namespace.
    pub(crate) offset_ns: u64,
}

impl Clock for Seated {
    #[inline]
    fn now_ns(&self) -> u64 {
        match self.gate.board().calibration() {
            // The counter knows no namespaces.
            Some(calibration) => calibration.at(clock::counter()),
            None => clock::monotonic_ns().wrapping_add(self.offset_ns),
        }
    }
}

impl Seated {
    /// Sleeps as long as the rules ask for, and gives what they say in the end.
    #[cold]
    fn wait(&self, waiting: &Waiting<'_>) -> Verdict {
        let mut waiting = *waiting;
        loop {
            while let left_ns @ 1.. = waiting.until_ns().saturating_sub(self.now_ns()) {
                pause(Duration::from_nanos(left_ns));
            }
            match self.gate.resume(self, lane::current(), &waiting) {
                Step::Done(verdict) => return verdict,
                Step::Wait(again) => waiting = again,
            }
        }
    }
}

/// Sleeps; may end early.
fn pause(time: Duration) {
    let time = Timespec::try_from(time).unwrap_or_default();
    // A signal ends it early, which the caller sees on its clock.
    let _rest = nanosleep(&time);
}

impl Session {
    #[expect(
        clippy::large_types_passed_by_value,
        reason = "moved in once for a connection"
    )]
    pub(crate) fn new(number: SessionNumber, life: &'static Life, seated: Option<Seated>) -> Self {
        Self {
            token: life.token(),
            number,
            seated,
            life,
        }
    }

    pub(crate) const fn number(&self) -> SessionNumber {
        self.number
    }

    pub(crate) const fn life(&self) -> &'static Life {
        self.life
    }

    /// Whether this process forked off the one whose session it is.
    #[inline]
    pub(crate) fn forked(&self) -> bool {
        self.token.forked()
    }

    /// Whether there are pages to decide on.
    pub(crate) const fn is_seated(&self) -> bool {
        self.seated.is_some()
    }

    /// Takes the slot of an entry from the pages themselves, as long as the agent has not answered:
    /// the slot of its name if the board has one, else the one that such names share.
    pub(crate) fn find(&self, entry: &Entry) {
        if let Some(seated) = &self.seated {
            let found = seated.gate.board().find(entry.name());
            entry.unless_resolved(self.number, found.unwrap_or(Slot::OVERFLOW));
        }
    }

    /// Decides; `None` if this session cannot: it is the parent's, has no pages, does not know the
    /// resource, or its seat was taken away.
    #[inline]
    pub(crate) fn enter(
        &'static self,
        entry: &Entry,
        request: Request<'_>,
    ) -> Option<Result<Permit, Refused>> {
        if self.forked() {
            return None;
        }
        let seated = self.seated.as_ref()?;
        let slot = entry.slot(self.number)?;
        let verdict = match seated.gate.enter(seated, lane::current(), slot, request) {
            Step::Done(verdict) => verdict,
            Step::Wait(waiting) => seated.wait(&waiting),
        };
        match verdict {
            Verdict::Admitted(pass) => Some(Ok(Permit::held(self, pass))),
            Verdict::Refused(refusal) => Some(Err(refusal.into())),
            Verdict::Stale => None,
        }
    }

    /// Gives a permit of this session back. One that was inherited over a fork is the parent's.
    #[inline]
    pub(crate) fn exit(&self, pass: Pass, outcome: Outcome) {
        if self.forked() {
            return;
        }
        if let Some(seated) = &self.seated {
            seated.gate.exit(seated, lane::current(), pass, outcome);
        }
    }
}
