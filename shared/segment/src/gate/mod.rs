//! The gate: decides on a board, a ledger and a clock.
//!
//! It runs in the service when the service maps the pages and in the agent when the service asks
//! over a socket; there is no second implementation. The order of its steps is authority → system
//! (scopes, inbound only) → hot parameter → flow → degrade. It peeks first and commits last: the
//! pass window is the last word to be exchanged, and only a lost race undoes what was reserved.

mod flow;
mod one_shot;
mod refusal;
mod scope;

pub use refusal::Refusal;

use tidegate_abi::board::SeatWord;
use tidegate_abi::decision::{Class, Direction, Outcome, RefusalKind};

use crate::board::{Board, Record, Slot};
use crate::clock::Clock;
use crate::lane::Lane;
use crate::ledger::{Cell, Ledger, Totals};

/// Decides for one seat on one pair of pages.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    board: Board,
    ledger: Ledger,
    seat: u32,
    generation: u32,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// How many requests at once; they count as one in flight.
    pub count: u32,
    /// Which way the work goes.
    pub direction: Direction,
    /// How important it is.
    pub class: Class,
}

impl Default for Request {
    /// One inbound request of normal importance.
    fn default() -> Self {
        Self {
            count: 1,
            direction: Direction::In,
            class: Class::Normal,
        }
    }
}

/// An admitted request. It is given back with [`Gate::exit`], on any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an admitted request stays in flight until it is given back with `Gate::exit`"]
pub struct Pass {
    /// The resource.
    pub slot: Slot,
    /// When it was admitted, monotonic ns.
    pub entered_ns: u64,
    /// Which way it goes.
    pub direction: Direction,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Admitted(Pass),
    /// Do not.
    Refused(Refusal),
    /// The seat was taken away or the slot belongs to another resource now: connect or resolve anew
    /// and ask again. Nothing was counted.
    Stale,
}

/// What a decision writes to: its thread's cell and totals.
#[derive(Debug, Clone, Copy)]
struct Books {
    cell: Cell,
    totals: Totals,
}

/// The place in flight of a request that is about to be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Still to be taken.
    Open,
    /// A concurrency rule has taken it.
    Taken,
}

/// One decision under way.
#[derive(Debug, Clone, Copy)]
struct Ask<'a, C> {
    clock: &'a C,
    now_ns: u64,
    slot: Slot,
    request: Request,
    books: Books,
}

impl Gate {
    /// A gate for a seat.
    pub const fn new(board: Board, ledger: Ledger, seat: u32, generation: u32) -> Self {
        Self {
            board,
            ledger,
            seat,
            generation,
        }
    }

    /// The board it decides on.
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// The ledger it counts in.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The seat it decides for.
    pub const fn seat(&self) -> u32 {
        self.seat
    }

    /// Whether the seat is still this gate's.
    #[inline]
    pub fn seated(&self) -> bool {
        self.board.seat(self.seat)
            == SeatWord {
                live: true,
                generation: self.generation,
            }
    }

    /// Decides on one request for a resource and, where it is admitted, counts it in flight.
    #[inline]
    pub fn enter<C: Clock>(&self, clock: &C, lane: Lane, slot: Slot, request: Request) -> Verdict {
        let now_ns = clock.now_ns();
        if !self.seated() {
            return Verdict::Stale;
        }
        let Some(books) = self.books(lane, slot) else {
            return Verdict::Stale;
        };
        let ask = Ask {
            clock,
            now_ns,
            slot,
            request,
            books,
        };
        let Some(record) = self.board.record(slot.index) else {
            return self.contended(&ask);
        };
        if record.generation != slot.generation {
            return Verdict::Stale;
        }
        match self.decide(&ask, &record) {
            Ok(place) => Verdict::Admitted(ask.admit(place)),
            Err(refusal) => Verdict::Refused(ask.refuse(refusal)),
        }
    }

    /// Runs the pipeline.
    #[inline]
    fn decide<C: Clock>(&self, ask: &Ask<'_, C>, record: &Record) -> Result<Place, Refusal> {
        if matches!(ask.request.direction, Direction::In) {
            self.check_scopes(ask)?;
        }
        if record.needs.0 == 0 {
            return Ok(Place::Open);
        }
        self.check_flow(ask, record)
    }

    /// Gives an admitted request back. Nothing happens if the seat was taken away meanwhile: its
    /// permits went with it.
    #[inline]
    pub fn exit<C: Clock>(&self, clock: &C, lane: Lane, pass: Pass, outcome: Outcome) {
        let now_ns = clock.now_ns();
        if !self.seated() {
            return;
        }
        let Some(books) = self.books(lane, pass.slot) else {
            return;
        };
        let rt_ns = now_ns.saturating_sub(pass.entered_ns);
        books.mark();
        books.cell.ended(outcome, rt_ns);
        if matches!(pass.direction, Direction::In) {
            books.totals.ended(outcome, rt_ns);
        }
    }

    #[inline]
    fn books(&self, lane: Lane, slot: Slot) -> Option<Books> {
        let row = self.ledger.row(self.seat, self.generation, lane)?;
        Some(Books {
            cell: row.cell(slot)?,
            totals: row.totals(),
        })
    }

    /// The agent published under every try. A decision must end: it admits, and that is counted.
    #[cold]
    fn contended<C>(&self, ask: &Ask<'_, C>) -> Verdict {
        if ask.slot.index >= self.board.resources_used() {
            return Verdict::Stale;
        }
        self.ledger.count_contended(self.seat);
        Verdict::Admitted(ask.admit(Place::Open))
    }
}

impl Books {
    /// Makes sure that the sums look at this lane before it writes its cell for the first time.
    #[inline]
    fn mark(self) {
        if !self.cell.used() {
            self.totals.mark_used();
        }
    }
}

impl<C> Ask<'_, C> {
    #[inline]
    fn admit(&self, place: Place) -> Pass {
        let Self {
            now_ns,
            slot,
            request,
            books,
            ..
        } = *self;
        books.mark();
        if matches!(place, Place::Open) {
            books.cell.take();
        }
        books.cell.passed();
        if matches!(request.direction, Direction::In) {
            books.totals.passed();
        }
        Pass {
            slot,
            entered_ns: now_ns,
            direction: request.direction,
        }
    }

    #[inline]
    fn refuse(&self, refusal: Refusal) -> Refusal {
        self.books.mark();
        self.books.cell.refused(refusal.kind);
        if matches!(self.request.direction, Direction::In) {
            self.books
                .totals
                .refused(matches!(refusal.kind, RefusalKind::System));
        }
        refusal
    }
}
