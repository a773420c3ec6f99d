//! A request that a rule holds back until its turn.

use std::mem;
use std::time::{Duration, Instant};

use rustix::thread::{Timespec, nanosleep};
use tidegate_abi::decision::Outcome;
use tidegate_abi::message::TOKEN;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{GateVerdict, Step, WaitingDecision};
use tidegate_segment::lane;
use tidegate_segment::os::fork::ForkToken;

use crate::admitted::Admitted;
use crate::asker::{Asker, Heard};
use crate::refused::Refused;
use crate::seat::SeatedGate;

/// How far a request has come.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and decisions make none"
)]
pub(crate) enum Progress<'a> {
    /// To its end; `None` if the session cannot decide any more.
    Decided(Option<Result<Admitted, Refused>>),
    /// To a rule that holds it back.
    Held(PendingEntry<'a>),
}

impl Progress<'_> {
    /// Sleeps in this thread until it is decided.
    pub(crate) fn sleep_through(self) -> Option<Result<Admitted, Refused>> {
        match self {
            Self::Decided(answer) => answer,
            Self::Held(held) => held.sleep_through(),
        }
    }
}

/// A request that waits for its turn. Dropped before, it puts back what it has taken and counts as refused; its
/// turn is lost.
pub(crate) struct PendingEntry<'a> {
    process: ForkToken,
    turn: Turn<'a>,
}

/// Where it waits.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and decisions make none"
)]
enum Turn<'a> {
    /// On the pages.
    Seated {
        seated: &'static SeatedGate,
        waiting: WaitingDecision<'a>,
        /// What of the longest wait is left.
        patience: Duration,
    },
    /// At the agent, which knows how long it may wait.
    Asked {
        asker: &'static Asker,
        token: [u8; TOKEN],
        until: Instant,
    },
    /// It went on.
    Over,
}

impl<'a> PendingEntry<'a> {
    /// Takes a step of the gate for what it is to a caller who waits no longer than `patience`.
    pub(crate) fn progress(
        process: ForkToken,
        seated: &'static SeatedGate,
        step: &Step<'a>,
        patience: Duration,
    ) -> Progress<'a> {
        let waiting = match *step {
            Step::Done(verdict) => return Progress::Decided(decided(verdict)),
            Step::Wait(waiting) => waiting,
        };
        let rest = patience.checked_sub(left(seated, &waiting));
        let mut held = PendingEntry {
            process,
            turn: Turn::Seated {
                seated,
                waiting,
                patience: rest.unwrap_or_default(),
            },
        };
        match rest {
            Some(_rest) => Progress::Held(held),
            None => Progress::Decided(held.abandon()),
        }
    }

    /// Takes what the agent said for what it is to the caller.
    pub(crate) fn heard(
        process: ForkToken,
        asker: &'static Asker,
        heard: Option<Heard>,
    ) -> Progress<'a> {
        let answer = match heard {
            None => None,
            Some(Heard::Refused(refused)) => Some(Err(refused)),
            Some(Heard::Admitted { token, waited }) => Some(Ok(Admitted::Asked { token, waited })),
            Some(Heard::Held { token, wait }) => {
                let turn = Turn::Asked {
                    asker,
                    token,
                    until: Instant::now() + wait,
                };
                return Progress::Held(PendingEntry { process, turn });
            }
        };
        Progress::Decided(answer)
    }

    /// How long it has to wait from now.
    pub(crate) fn left(&self) -> Duration {
        match &self.turn {
            Turn::Seated {
                seated, waiting, ..
            } => left(seated, waiting),
            Turn::Asked { until, .. } => until.saturating_duration_since(Instant::now()),
            Turn::Over => Duration::ZERO,
        }
    }

    /// Goes on with it. Too early, it would be admitted before its turn: ask [`PendingEntry::left`] first.
    pub(crate) fn resume(mut self) -> Progress<'a> {
        let process = self.process;
        match self.take() {
            Turn::Seated {
                seated,
                waiting,
                patience,
            } => {
                let step = seated.gate.resume(seated, lane::current(), &waiting);
                Self::progress(process, seated, &step, patience)
            }
            Turn::Asked { asker, token, .. } => Self::heard(process, asker, asker.resume(token)),
            Turn::Over => Progress::Decided(None),
        }
    }

    /// Sleeps in this thread until it is decided.
    #[cold]
    fn sleep_through(mut self) -> Option<Result<Admitted, Refused>> {
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

    /// Takes the turn out; in a forked process it is the parent's.
    fn take(&mut self) -> Turn<'a> {
        let turn = mem::replace(&mut self.turn, Turn::Over);
        if self.process.forked() {
            return Turn::Over;
        }
        turn
    }

    fn abandon(&mut self) -> Option<Result<Admitted, Refused>> {
        match self.take() {
            Turn::Seated {
                seated, waiting, ..
            } => {
                let verdict = seated.gate.abandon(seated, lane::current(), &waiting);
                decided(verdict)
            }
            Turn::Asked { asker, token, .. } => {
                asker.exit(token, Outcome::Ignore);
                None
            }
            Turn::Over => None,
        }
    }
}

impl Drop for PendingEntry<'_> {
    fn drop(&mut self) {
        let _refused = self.abandon();
    }
}

/// How long a request on the pages has to wait from now.
fn left(seated: &SeatedGate, waiting: &WaitingDecision<'_>) -> Duration {
    Duration::from_nanos(waiting.until_ns().saturating_sub(seated.now_ns()))
}

/// What a verdict is to a caller; `None` if seat or slot are not the session's any more.
fn decided(verdict: GateVerdict) -> Option<Result<Admitted, Refused>> {
    match verdict {
        GateVerdict::Admitted(pass) => Some(Ok(Admitted::of(pass))),
        GateVerdict::Refused(refusal) => Some(Err(refusal.into())),
        GateVerdict::Stale => None,
    }
}

/// Sleeps; may end early.
fn pause(time: Duration) {
    let time = Timespec::try_from(time).unwrap_or_default();
    // A signal ends it early, which the caller sees on its clock.
    let _rest = nanosleep(&time);
}
