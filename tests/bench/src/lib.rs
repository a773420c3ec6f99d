//! Pages, resources and gates to measure decisions on.

pub mod agent;

use std::hint::black_box;
use std::num::NonZeroU64;

use tidegate_abi::board::{Needs, ScopeWord};
use tidegate_abi::decision::{Cause, Direction, LossMode, Mode, Outcome, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    self, Board, BoardRule, BoardSettings, ClockSource, FlowLimit, FlowRule, OriginTest, Process,
    PublishedScope, ResourceRecord, RuleKind, Slot, Subject, Writers,
};
use tidegate_segment::clock::Calibration;
use tidegate_segment::gate::{
    ClassAndOrigin, Gate, GateVerdict, PlainRequest, Request, Step, Ticket,
};
use tidegate_segment::lane;
use tidegate_segment::ledger::{Ledger, Node};
use tidegate_segment::page::Page;

/// A limit that is in force and never reached in a run.
pub const NEVER_REACHED: u32 = 16_000_000;

/// Entry limit of the host's scope: in force, and far away, as on a healthy host.
const ENTRY: u32 = 1000;

/// Pages in private memory, as an agent keeps them on a healthy host.
#[derive(Debug)]
pub struct BenchPages {
    board: Board,
    ledger: Ledger,
    writers: Writers,
    now_ns: u64,
    lines: u32,
}

impl BenchPages {
    /// New pages that tell the time by [`still`].
    ///
    /// # Panics
    /// The sizes are fixed and right.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "pages are made, there are none by default"
    )]
    pub fn new() -> Self {
        Self::by(still(), STILL_NS)
    }

    /// New pages that tell the time by `clock`, where it is `now_ns`.
    ///
    /// # Panics
    /// The sizes are fixed and right.
    #[must_use]
    pub fn by(clock: ClockSource, now_ns: u64) -> Self {
        let geometry = Geometry::new(16, 2, 2, 1).expect("sizes within their maxima");
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: u64::MAX / 4,
            grace_ns: 0,
            loss_mode: LossMode::Open,
        };
        let page = Page::private(geometry.board().words);
        let (board, mut writers) =
            board::create(page, geometry, settings).expect("a page of that size");
        let ledger = Ledger::create(Page::private(geometry.ledger().words), geometry)
            .expect("a page of that size");
        writers.tick.publish_clock(clock);
        writers.tick.publish_scope(0, &report(false));
        Self {
            board,
            ledger,
            writers,
            now_ns,
            lines: 0,
        }
    }

    /// Has decisions count what the host's scope holds each time, as where its entry limit is small.
    pub fn count_each_time(&mut self) {
        self.writers.tick.publish_scope(0, &report(true));
    }

    /// A resource with these rules in its record.
    ///
    /// # Panics
    /// There is room for sixteen.
    pub fn plain(&mut self, name: &str, limit: Option<u32>) -> Slot {
        let record = ResourceRecord {
            needs: Needs(if limit.is_some() { Needs::QPS } else { 0 }),
            qps_limit: limit.unwrap_or(0),
            ..ResourceRecord::default()
        };
        self.writers.rules.add(name, &record, &[]).expect("room")
    }

    /// A resource with rules of the table.
    ///
    /// # Panics
    /// There is room for sixteen.
    pub fn ruled(&mut self, name: &str, kinds: &[RuleKind]) -> Slot {
        let rules: Vec<BoardRule> = kinds.iter().map(|kind| self.rule(*kind)).collect();
        let counted = kinds.iter().any(|kind| matches!(kind, RuleKind::Flow(_)));
        let counted = if counted { Needs::COUNTED } else { 0 };
        let record = ResourceRecord {
            needs: Needs(Needs::RULES | counted),
            ..ResourceRecord::default()
        };
        self.writers.rules.add(name, &record, &rules).expect("room")
    }

    fn rule(&mut self, kind: RuleKind) -> BoardRule {
        self.lines += 1;
        BoardRule {
            number: self.lines,
            mode: Mode::Enforce,
            state: self.lines,
            quirks: Quirks::None,
            kind,
        }
    }

    /// The node of a resource and the clock of these pages, for a check of nothing but the window.
    ///
    /// # Panics
    /// The slot is one of these pages.
    #[must_use]
    pub fn window(&self, slot: Slot) -> (Board, Node) {
        let node = self.ledger.node(slot.index).expect("a slot of these pages");
        (self.board, node)
    }

    /// A gate on these pages.
    ///
    /// # Panics
    /// There is one seat.
    pub fn gate(&mut self) -> Gate {
        let process = Process {
            pid: std::process::id(),
            start: 0,
            uid: 0,
            scope: 0,
        };
        let generation = self.writers.seats.seat(1, process).expect("a free seat");
        self.writers.tick.beat(self.now_ns);
        Gate::new(self.board, self.ledger, 1, generation)
    }
}

/// A healthy host.
const fn report(near: bool) -> PublishedScope {
    PublishedScope {
        word: ScopeWord {
            state: ScopeState::Healthy,
            short: false,
            near,
            observe: false,
            entry: ENTRY,
            tight: ENTRY / 2,
        },
        allowed_qps_milli: u64::MAX,
        cause: Cause::None,
        since_ns: 0,
        inflight: 0,
    }
}

/// A flow rule of so many passes a second.
#[must_use]
pub const fn flow(limit: u32) -> RuleKind {
    RuleKind::Flow(FlowRule {
        origin: OriginTest::Any,
        subject: Subject::Direct,
        limit: FlowLimit::Qps(limit),
    })
}

/// A breaker that opens when more than half of the calls are bad.
#[must_use]
pub const fn breaker(trip: BreakerTrip) -> RuleKind {
    RuleKind::Degrade {
        breaker: Breaker {
            trip,
            min_requests: 5,
            recovery_ns: 3_600_000_000_000,
            lease_ns: 3_600_000_000_000,
            quirks: Quirks::None,
        },
        interval_ns: NonZeroU64::new(1_000_000_000).expect("a second"),
    }
}

/// The time of [`still`], ns.
const STILL_NS: u64 = 1_000_000_000_000;

/// The time stamp counter with a calibration by which no time passes: read and converted as ever, and yet
/// every decision of a run is made at the same moment (in 2^32 counts passes 1 ns), so that the same
/// instructions run each time.
#[must_use]
pub const fn still() -> ClockSource {
    ClockSource::Counter(Calibration {
        base_ns: STILL_NS,
        mult: 1,
    })
}

/// Enters as a service does; the ticket if that is admitted on the express way.
#[inline(always)]
pub fn enter(gate: &Gate, slot: Slot) -> Option<Ticket> {
    let plain = PlainRequest {
        slot: black_box(slot),
        direction: Direction::In,
    };
    match gate.express(gate.board(), lane::current(), plain) {
        Some(Ok(ticket)) => Some(ticket),
        Some(Err(refusal)) => {
            black_box(&refusal);
            None
        }
        None => {
            pass_closely(gate, slot);
            None
        }
    }
}

/// Enters where the express way gave no answer, and gives an admitted request back at once: a ticket that may come from
/// here would have to be kept in memory, and cost those from the express way 30 instructions.
#[cold]
#[inline(never)]
fn pass_closely(gate: &Gate, slot: Slot) {
    let direction = Direction::In;
    let plain = PlainRequest { slot, direction };
    let (clock, lane) = (gate.board(), lane::current());
    match gate.express_closely(clock, lane, plain, ClassAndOrigin::of(&Request::PLAIN)) {
        Some(Ok(ticket)) => gate.give_back(clock, lane, &ticket, Outcome::Ok),
        Some(Err(refusal)) => {
            black_box(&refusal);
        }
        None => pass_at_length(gate, plain.slot),
    }
}

/// Enters the long way, and gives an admitted request back at once.
#[cold]
#[inline(never)]
fn pass_at_length(gate: &Gate, slot: Slot) {
    let (clock, lane) = (gate.board(), lane::current());
    let step = gate.enter_at_length(clock, lane, slot, Request::default());
    if let Step::Done(GateVerdict::Admitted(pass)) = step {
        gate.exit(clock, lane, pass, Outcome::Ok);
    }
}

/// Gives an admitted request back.
#[inline(always)]
pub fn exit(gate: &Gate, ticket: &Ticket, outcome: Outcome) {
    let (clock, lane) = (gate.board(), lane::current());
    gate.give_back(clock, lane, black_box(ticket), outcome);
}
