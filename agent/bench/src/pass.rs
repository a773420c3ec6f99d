//! Enter and exit as a service does them, and how often they are measured.

use std::hint::black_box;

use tidegate_abi::decision::{Direction, Outcome};
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{Gate, GateVerdict, PlainRequest, Request, Step};
use tidegate_segment::lane;

use crate::figure::NoFigure;

/// A limit that is in force and never reached: all rounds together admit less.
pub(crate) const NEVER_REACHED: u32 = 16_000_000;

/// Rounds are so short that a neighbour on the core seldom comes and goes within one.
pub(crate) const ROUNDS: u32 = 16_000;
pub(crate) const CALLS: u32 = 250;

/// Enters and, where that is admitted, exits, as a service does. Says whether it was admitted.
#[inline]
pub(crate) fn pass(gate: &Gate, slot: Slot) -> bool {
    let plain = PlainRequest {
        slot: black_box(slot),
        direction: Direction::In,
    };
    match gate.express(gate.board(), lane::current(), plain) {
        Some(Ok(ticket)) => {
            let lane = lane::current();
            gate.give_back(gate.board(), lane, black_box(&ticket), Outcome::Ok);
            true
        }
        Some(Err(refusal)) => {
            black_box(&refusal);
            false
        }
        None => pass_with(gate, slot, Request::default()),
    }
}

/// The same for what the express way does not serve.
#[inline(never)]
pub(crate) fn pass_with(gate: &Gate, slot: Slot, request: Request<'_>) -> bool {
    let (clock, lane) = (gate.board(), lane::current());
    match gate.enter_at_length(clock, lane, black_box(slot), request) {
        Step::Done(GateVerdict::Admitted(pass)) => {
            gate.exit(clock, lane::current(), black_box(pass), Outcome::Ok);
            true
        }
        Step::Done(GateVerdict::Refused(refusal)) => {
            black_box(refusal);
            false
        }
        Step::Done(GateVerdict::Stale) | Step::Wait(_) => false,
    }
}

pub(crate) fn expect_none(count: u64, what: &str) -> Result<(), NoFigure> {
    if count == 0 {
        return Ok(());
    }
    Err(NoFigure::Wrong(format!(
        "{count} {what}; run the bench again"
    )))
}
