//! Every interleaving of a few threads at the multi-word steps, by loom.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-segment loom`
//!
//! A word that changes by one exchange alone needs none of these; a step that reads or writes two
//! words, or acts on what it read a while ago, does.

mod breaker;
mod express;
mod give_back;
mod inflight;
mod pace;
mod parts;
mod publish;
mod value;
mod window;

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, LossMode, Mode};
use tidegate_abi::geometry::Geometry;
use tidegate_limits::quirks::Quirks;

use crate::board::{
    self, Board, BoardRule, BoardSettings, Process, ResourceRecord, RuleKind, Slot, Writers,
};
use crate::clock::Clock;
use crate::gate::{Gate, GateVerdict, Pass, Request, Step};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::page::Page;

#[derive(Clone, Copy)]
struct At(u64);

impl Clock for At {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

const NOW: At = At(1_000_000_000_000);

struct Pages {
    board: Board,
    ledger: Ledger,
    writers: Writers,
}

fn pages(seats: u32, lanes: u32) -> Pages {
    pages_of(1, seats, lanes)
}

fn pages_of(resources: u32, seats: u32, lanes: u32) -> Pages {
    let geometry = Geometry::new(resources, seats, lanes, 1).unwrap();
    let settings = BoardSettings {
        generation: 1,
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let (board, writers) =
        board::create(Page::private(geometry.board().words), geometry, settings).unwrap();
    let ledger = Ledger::create(Page::private(geometry.ledger().words), geometry).unwrap();
    Pages {
        board,
        ledger,
        writers,
    }
}

impl Pages {
    fn resource(&mut self, record: ResourceRecord) -> Slot {
        self.writers.rules.add("r", &record, &[]).unwrap()
    }

    /// A resource with one rule of the table, whose state is line 0.
    fn ruled(&mut self, kind: RuleKind) -> Slot {
        let (record, rule) = ruled_by(kind);
        self.writers.rules.add("r", &record, &[rule]).unwrap()
    }

    fn gate(&mut self, seat: u32) -> Gate {
        let process = Process {
            pid: seat,
            start: 0,
            uid: 0,
            scope: 0,
        };
        let generation = self.writers.seats.seat(seat, process).unwrap();
        Gate::new(self.board, self.ledger, seat, generation)
    }
}

/// The record and the rule of a resource with one rule of the table.
fn ruled_by(kind: RuleKind) -> (ResourceRecord, BoardRule) {
    let rule = BoardRule {
        number: 0,
        mode: Mode::Enforce,
        state: 0,
        quirks: Quirks::None,
        kind,
    };
    let record = ResourceRecord {
        needs: Needs(Needs::RULES | Needs::COUNTED | Needs::SECONDS),
        ..ResourceRecord::default()
    };
    (record, rule)
}

fn enter(gate: &Gate, now: At, lane: u32, slot: Slot) -> Option<Pass> {
    // Outbound: the scopes are not looked at, which saves their interleavings.
    let request = Request {
        direction: Direction::Out,
        ..Request::default()
    };
    match gate.enter(&now, Lane::numbered(lane), slot, request) {
        Step::Done(GateVerdict::Admitted(pass)) => Some(pass),
        Step::Done(GateVerdict::Refused(_) | GateVerdict::Stale) | Step::Wait(_) => None,
    }
}
