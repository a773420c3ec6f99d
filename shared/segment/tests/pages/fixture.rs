//! Pages in private memory, and a clock that the test moves.

use std::cell::Cell;

use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{self, Board, BoardSettings, Process, ResourceRecord, Slot, Writers};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const TIME_TO_LIVE_NS: u64 = SECOND;
pub(crate) const GRACE_NS: u64 = 10 * SECOND;

/// Time that stands still until the test moves it.
pub(crate) struct Scripted(Cell<u64>);

impl Scripted {
    pub(crate) fn at(now_ns: u64) -> Self {
        Self(Cell::new(now_ns))
    }
    pub(crate) fn advance(&self, by_ns: u64) {
        self.0.set(self.0.get() + by_ns);
    }
}

impl Clock for Scripted {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// A tenant without an agent process.
pub(crate) struct Fixture {
    pub(crate) board: Board,
    pub(crate) ledger: Ledger,
    pub(crate) writers: Writers,
    pub(crate) clock: Scripted,
}

impl Fixture {
    pub(crate) fn new(loss_mode: LossMode) -> Self {
        let geometry = Geometry::new(8, 4, 3, 4).unwrap();
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: TIME_TO_LIVE_NS,
            grace_ns: GRACE_NS,
            loss_mode,
        };
        let page = Page::private(geometry.board().words);
        let (board, mut writers) = board::create(page, geometry, settings).unwrap();
        let ledger = Ledger::create(Page::private(geometry.ledger().words), geometry).unwrap();
        let clock = Scripted::at(1_000 * SECOND);
        writers.tick.beat(clock.now_ns());
        Self {
            board,
            ledger,
            writers,
            clock,
        }
    }

    pub(crate) fn resource(&mut self, name: &str, record: ResourceRecord) -> Slot {
        self.writers.rules.add(name, &record, &[]).unwrap()
    }

    /// Seats a process of a scope in a seat that is free.
    pub(crate) fn gate(&mut self, seat: u32, scope: u32) -> Gate {
        let process = Process {
            pid: 100 + seat,
            start: 1,
            uid: 0,
            scope,
        };
        let generation = self.writers.seats.seat(seat, process).unwrap();
        Gate::new(self.board, self.ledger, seat, generation)
    }

    pub(crate) fn inflight(&self, slot: Slot) -> u32 {
        self.ledger.node_inflight(&self.board, slot)
    }
}
