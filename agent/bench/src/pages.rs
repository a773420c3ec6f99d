//! A pair of pages as an agent makes it and a service maps it.

use std::os::fd::OwnedFd;

use tidegate_abi::board::{Needs, ScopeWord};
use tidegate_abi::decision::{Cause, LossMode, Mode, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    self, Board, BoardRule, BoardSettings, ClockSource, FlowLimit, Process, PublishedScope,
    ResourceRecord, RuleKind, Slot, Writers,
};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::page::Page;

use crate::figure::NoFigure;

/// A heartbeat that stays fresh while the bench runs, ns.
const TIME_TO_LIVE_NS: u64 = 3_600_000_000_000;

/// Entry limit of the host's scope: in force, and far away, as on a healthy host.
const ENTRY: u32 = 1000;

/// A pair of pages with the writing roles of its board.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) board_file: OwnedFd,
    pub(crate) ledger_file: OwnedFd,
    pub(crate) writers: Box<Writers>,
    view: View,
    /// First line of state that no rule has.
    lines: u32,
}

/// A pair of pages as a service sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) board: Board,
    pub(crate) ledger: Ledger,
}

impl Pages {
    /// Pages for `resources` resources and a few seats, with a healthy host and this clock.
    pub(crate) fn new(resources: u32, clock: ClockSource) -> Result<Self, NoFigure> {
        Self::with_lanes(resources, 2, clock)
    }

    /// The same with so many lanes in a seat.
    pub(crate) fn with_lanes(
        resources: u32,
        lanes: u32,
        clock: ClockSource,
    ) -> Result<Self, NoFigure> {
        let geometry = Geometry::new(resources, 4, lanes, 1)
            .map_err(|fault| NoFigure::Wrong(format!("{fault:?}")))?;
        let (board_page, board_file) = memfd::create(MemoryKind::Board, geometry.board().words)?;
        let (ledger_page, ledger_file) =
            memfd::create(MemoryKind::Ledger, geometry.ledger().words)?;
        let mut writers = format(board_page, ledger_page, geometry)
            .ok_or_else(|| NoFigure::Wrong("a new page is too short".to_owned()))?;
        writers.tick.publish_clock(clock);
        writers.tick.publish_scope(0, &healthy(ENTRY));
        let view = View::open(&board_file, &ledger_file)?;
        Ok(Self {
            board_file,
            ledger_file,
            writers,
            view,
            lines: 0,
        })
    }

    /// The board as a service maps it.
    pub(crate) const fn board(&self) -> Board {
        self.view.board
    }

    /// Adds a resource with one flow rule of `limit` passes a second.
    pub(crate) fn resource(&mut self, name: &str, limit: u32) -> Result<Slot, NoFigure> {
        let record = ResourceRecord {
            needs: Needs(Needs::QPS),
            qps_limit: limit,
            ..ResourceRecord::default()
        };
        Ok(self.writers.rules.add(name, &record, &[])?)
    }

    /// Adds a resource with rules of the table, which have its lines of state to themselves.
    pub(crate) fn ruled(&mut self, name: &str, kinds: &[RuleKind]) -> Result<Slot, NoFigure> {
        let mut lines = self.lines..;
        let rules = kinds.iter().zip(&mut lines).map(|(kind, line)| BoardRule {
            number: line,
            mode: Mode::Enforce,
            state: line,
            quirks: Quirks::None,
            kind: *kind,
        });
        let rules: Vec<BoardRule> = rules.collect();
        self.lines = lines.start;
        // As the agent compiles them: a flow rule has its resource counted, and by whole seconds too
        // where it warms up.
        let flow = |kind: &RuleKind| match kind {
            RuleKind::Flow(flow) => Some(flow.limit),
            RuleKind::Authority { .. } | RuleKind::Param(_) | RuleKind::Degrade { .. } => None,
        };
        let warms = |limit| matches!(limit, FlowLimit::WarmUp(_));
        let mut needs = Needs::RULES;
        for limit in kinds.iter().filter_map(flow) {
            needs |= Needs::COUNTED | if warms(limit) { Needs::SECONDS } else { 0 };
        }
        let record = ResourceRecord {
            needs: Needs(needs),
            ..ResourceRecord::default()
        };
        Ok(self.writers.rules.add(name, &record, &rules)?)
    }

    /// Seats this process and gives its gate.
    pub(crate) fn gate(&mut self, seat: u32) -> Result<Gate, NoFigure> {
        let process = Process {
            pid: std::process::id(),
            start: 0,
            uid: 0,
            scope: 0,
        };
        let generation = self.writers.seats.seat(seat, process);
        let generation =
            generation.ok_or_else(|| NoFigure::Wrong(format!("seat {seat} is taken")))?;
        // The agent's next tick finds the seat calm.
        self.writers.tick.beat(monotonic_ns());
        Ok(Gate::new(
            self.view.board,
            self.view.ledger,
            seat,
            generation,
        ))
    }
}

impl View {
    /// Maps both files as a service does: the board read-only.
    pub(crate) fn open(board_file: &OwnedFd, ledger_file: &OwnedFd) -> Result<Self, NoFigure> {
        let page = memfd::open(MemoryKind::Board, board_file, words(board_file)?)?;
        let board = Board::open(page)?;
        let page = memfd::open(MemoryKind::Ledger, ledger_file, words(ledger_file)?)?;
        let ledger = Ledger::open(page, board.geometry())?;
        Ok(Self { board, ledger })
    }
}

/// Writes the headers of both pages.
fn format(board_page: Page, ledger_page: Page, geometry: Geometry) -> Option<Box<Writers>> {
    let settings = BoardSettings {
        generation: 1,
        time_to_live_ns: TIME_TO_LIVE_NS,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let (_board, writers) = board::create(board_page, geometry, settings)?;
    Ledger::create(ledger_page, geometry)?;
    Some(Box::new(writers))
}

fn words(file: &OwnedFd) -> Result<usize, NoFigure> {
    let stat = rustix::fs::fstat(file).map_err(|errno| NoFigure::Kernel {
        what: "fstat",
        error: errno.into(),
    })?;
    Ok(usize::try_from(stat.st_size).unwrap_or(0) / 8)
}

/// A healthy scope with this entry limit.
pub(crate) const fn healthy(entry: u32) -> PublishedScope {
    PublishedScope {
        word: ScopeWord {
            state: ScopeState::Healthy,
            short: false,
            near: false,
            observe: false,
            entry,
            tight: entry / 2,
        },
        allowed_qps_milli: u64::MAX,
        cause: Cause::None,
        since_ns: 0,
        inflight: 0,
    }
}
