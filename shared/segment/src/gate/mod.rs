//! The gate: decides on a board, a ledger and a clock.
//!
//! It runs in the service when the service maps the pages and in the agent when the service asks
//! over a socket; there is no second implementation. The order of its steps is authority → system
//! (scopes and system rules, inbound only) → hot parameter → flow → degrade.
//!
//! It is a resumable machine: [`Gate::enter`] decides or says until when to wait, [`Gate::resume`]
//! goes on from there. All rules are looked at in order first (pacing and tokens take their turn and
//! keep it), then what they count is committed, one exchange for each node, and undone only when a
//! race was lost. For one caller at a time that is Sentinel's order of events; for any number of
//! callers no limit is exceeded in an aligned window.
//!
//! A resource with nothing but plain limits, or a QPS limit and a breaker, takes the express way (`express`, and
//! `closely` where its scopes are not calm). The first request of a lane and one that asks for more than a plain one take
//! the short way (`flow`), all others the walk through their rules (`walk`).

mod closely;
mod degrade;
mod express;
mod flow;
mod one_shot;
mod param;
mod part;
mod place;
mod refusal;
mod request;
mod rules;
mod scope;
mod system;
mod ticket;
mod walk;

pub use part::Parts;
pub use refusal::Refusal;
pub use request::{Arg, BREAKERS, ClassAndOrigin, Pass, Request, RequestName, VALUES};
pub use ticket::{PlainRequest, Ticket};
pub use walk::WaitingDecision;

use tidegate_abi::board::{CalmWord, Needs, SeatWord, seat};
use tidegate_abi::decision::{Direction, Outcome, RefusalKind};

use self::request::PassExtras;
use self::walk::Walk;
use crate::board::{Board, ResourceRecord, Slot, split};
use crate::clock::Clock;
use crate::lane::{self, Lane};
use crate::ledger::{Cell, Ledger, SeatRows, Totals};
use crate::sync::{Ordering, Word};

/// Decides for one seat on one pair of pages.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    board: Board,
    ledger: Ledger,
    seat: u32,
    generation: u32,
    /// The seat's word while it is this gate's.
    identity: u64,
    /// What its calm word is compared with, see [`CalmWord`].
    holder: u64,
    rows: SeatRows,
    /// The seat's line, which every decision looks at.
    chair: &'static [Word; seat::WORDS],
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// Go on.
    Admitted(Pass),
    /// Do not.
    Refused(Refusal),
    /// The seat was taken away or the slot belongs to another resource now: connect or resolve anew
    /// and ask again. Nothing was counted.
    Stale,
}

/// The answer, or a wait on the way to it.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation, and decisions make none"
)]
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// Decided.
    Done(GateVerdict),
    /// Wait, then [`Gate::resume`].
    Wait(WaitingDecision<'a>),
}

/// Needs that the short way serves.
const PLAIN: u32 =
    Needs::QPS | Needs::CONCURRENCY | Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY;

/// What a decision writes to: its thread's cell and totals.
#[derive(Debug, Clone, Copy)]
struct ThreadCounters {
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
    lane: Lane,
    now_ns: u64,
    slot: Slot,
    request: &'a Request<'a>,
    books: ThreadCounters,
}

impl Gate {
    /// A gate for a seat.
    pub fn new(board: Board, ledger: Ledger, seat: u32, generation: u32) -> Self {
        let identity = SeatWord {
            live: true,
            generation,
        };
        Self {
            board,
            ledger,
            seat,
            generation,
            identity: identity.pack(),
            holder: CalmWord::holder(generation),
            rows: ledger.seat_rows(seat, generation),
            chair: board.seat_line(seat),
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
    #[inline(always)]
    pub fn seated(&self) -> bool {
        // Acquire: pairs with the Release in `SeatWriter::seat`; a new holder finds a clean row.
        self.chair[seat::IDENTITY].load(Ordering::Acquire) == self.identity
    }

    /// The scope of the process besides the host; the host where it has none.
    #[inline(always)]
    fn own_scope(&self) -> u32 {
        split(self.chair[seat::SCOPE].load(Ordering::Relaxed)).0
    }

    /// Decides on one request for a resource and, where it is admitted, counts it in flight.
    #[inline(always)]
    pub fn enter<'a, C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        slot: Slot,
        request: Request<'a>,
    ) -> Step<'a> {
        let plain = PlainRequest::of(slot, &request);
        match plain.and_then(|plain| self.express(clock, lane, plain)) {
            Some(Ok(ticket)) => Step::Done(GateVerdict::Admitted(ticket.into())),
            Some(Err(refusal)) => Step::Done(GateVerdict::Refused(refusal)),
            None => self.enter_at_length(clock, lane, slot, request),
        }
    }

    /// Decides the long way, after [`Gate::express`] gave no answer.
    #[inline(never)]
    pub fn enter_at_length<'a, C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        slot: Slot,
        request: Request<'a>,
    ) -> Step<'a> {
        let lane = lane::taken(lane);
        let plain = PlainRequest::of(slot, &request);
        let caller = ClassAndOrigin::of(&request);
        let express = plain.and_then(|plain| self.express_closely(clock, lane, plain, caller));
        match express {
            Some(Ok(ticket)) => return Step::Done(GateVerdict::Admitted(ticket.into())),
            Some(Err(refusal)) => return Step::Done(GateVerdict::Refused(refusal)),
            None => {}
        }
        let request = self.with_held_parts(request);
        let now_ns = clock.now_ns();
        if !self.seated() {
            return Step::Done(GateVerdict::Stale);
        }
        let Some(books) = self.books(lane, slot) else {
            return Step::Done(GateVerdict::Stale);
        };
        let ask = Ask {
            clock,
            lane,
            now_ns,
            slot,
            request: &request,
            books,
        };
        let Some((view, record)) = self.board.view_of(slot.index) else {
            return Step::Done(self.contended(&ask));
        };
        if record.generation != slot.generation {
            return Step::Done(GateVerdict::Stale);
        }
        if record.needs.0 & !PLAIN == 0 {
            return if request.prioritized {
                self.enter_prioritized(&ask, request, &record)
            } else {
                Step::Done(self.enter_plain(&ask, &record))
            };
        }
        let walk = Walk::begin(slot, request, now_ns, view.generation());
        self.walk(&ask, &view, &walk)
    }

    /// The short way: no rule of the table is concerned.
    #[inline]
    fn enter_plain<C: Clock>(&self, ask: &Ask<'_, C>, record: &ResourceRecord) -> GateVerdict {
        match self.decide_plain(ask, record) {
            Ok(place) => GateVerdict::Admitted(ask.admit(place)),
            Err(refusal) => GateVerdict::Refused(ask.refuse(refusal)),
        }
    }

    #[inline]
    fn decide_plain<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        record: &ResourceRecord,
    ) -> Result<Place, Refusal> {
        if matches!(ask.request.direction, Direction::In) {
            self.check_scopes(ask)?;
        }
        if record.needs.0 == 0 {
            return Ok(Place::Open);
        }
        self.check_flow(ask, record)
    }

    /// Goes on with a request whose wait is over.
    pub fn resume<'a, C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        waiting: &WaitingDecision<'a>,
    ) -> Step<'a> {
        let mut walk = waiting.walk();
        walk.let_go(|node| self.board.is_held(node));
        let Some(books) = self.books_of(lane, &walk) else {
            return Step::Done(GateVerdict::Stale);
        };
        let (slot, request) = (walk.slot(), walk.request());
        let ask = Ask {
            clock,
            lane,
            now_ns: clock.now_ns(),
            slot,
            request: &request,
            books,
        };
        self.walk(&ask, &self.board.view(), &walk)
    }

    /// Ends a request that waits and will not be resumed: what it held is put back, and it counts as
    /// refused. Its turn in a queue is lost.
    pub fn abandon<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        waiting: &WaitingDecision<'_>,
    ) -> GateVerdict {
        let mut walk = waiting.walk();
        walk.let_go(|node| self.board.is_held(node));
        let (slot, request) = (walk.slot(), walk.request());
        let Some(books) = self.books_of(lane, &walk) else {
            return GateVerdict::Stale;
        };
        let ask = Ask {
            clock,
            lane,
            now_ns: clock.now_ns(),
            slot,
            request: &request,
            books,
        };
        self.give_up(&ask, &walk, waiting.until_ns())
    }

    /// Gives an admitted request back. Nothing happens if the seat was taken away meanwhile: its
    /// permits went with it.
    #[inline(always)]
    pub fn exit<C: Clock>(&self, clock: &C, lane: Lane, pass: Pass, outcome: Outcome) {
        match pass.ticket() {
            Some(ticket) => self.give_back(clock, lane, &ticket, outcome),
            None => self.exit_at_length(lane, &pass, outcome, clock.now_ns()),
        }
    }

    /// [`Gate::exit`] for a request that came the express way.
    #[inline(always)]
    pub fn give_back<C: Clock>(&self, clock: &C, lane: Lane, ticket: &Ticket, outcome: Outcome) {
        let (now_ns, row) = (clock.now_ns(), self.rows.own_row(lane));
        if let Some(row) = row
            && self.exit_express(&row, ticket, outcome, now_ns).is_some()
        {
            return;
        }
        self.give_back_at_length(lane, *ticket, outcome, now_ns);
    }

    #[inline(never)]
    fn give_back_at_length(&self, lane: Lane, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        let lane = lane::taken(lane);
        if self.rows.own_row(lane).is_none() {
            let row = self.rows.shared_row();
            let ended = row.and_then(|row| self.exit_express(&row, &ticket, outcome, now_ns));
            if ended.is_some() {
                return;
            }
        }
        self.exit_at_length(lane, &ticket.into(), outcome, now_ns);
    }

    #[inline(never)]
    fn exit_at_length(&self, lane: Lane, pass: &Pass, outcome: Outcome, now_ns: u64) {
        if !self.seated() {
            return;
        }
        let Some(books) = self.books(lane, pass.slot) else {
            return;
        };
        let rt_ns = now_ns.saturating_sub(pass.entered_ns);
        if self.board.is_held(pass.slot) {
            books.mark();
            books.cell.ended(outcome, pass.count, rt_ns);
            let ended = (outcome, rt_ns);
            self.ledger.count_time(pass.slot, ended, pass.count);
        }
        if matches!(pass.direction, Direction::In) {
            books.totals.ended(outcome, rt_ns);
        }
        if !matches!(pass.kept, PassExtras::Nothing) {
            self.exit_walked(lane, pass, outcome, now_ns);
        }
    }

    /// What a walk that waited writes to; `None` if its seat was taken away, or its slot given back.
    fn books_of(&self, lane: Lane, walk: &Walk<'_>) -> Option<ThreadCounters> {
        if !self.seated() {
            return None;
        }
        if !self.board.is_held(walk.slot()) {
            self.end_values(&walk.held);
            return None;
        }
        self.books(lane, walk.slot())
    }

    #[inline(always)]
    fn books(&self, lane: Lane, slot: Slot) -> Option<ThreadCounters> {
        let row = self.rows.row(lane)?;
        Some(ThreadCounters {
            cell: row.cell(slot)?,
            totals: row.totals(),
        })
    }

    /// The agent published under every try. A decision must end: it admits, and that is counted.
    #[cold]
    fn contended<C>(&self, ask: &Ask<'_, C>) -> GateVerdict {
        if ask.slot.index >= self.board.resources_used() {
            return GateVerdict::Stale;
        }
        self.ledger.count_contended(self.seat);
        GateVerdict::Admitted(ask.admit(Place::Open))
    }
}

impl ThreadCounters {
    /// Makes sure that the sums look at this lane before it writes its cell for the first time.
    #[inline(always)]
    fn mark(self) {
        if !self.cell.used() {
            self.totals.mark_used();
            self.cell.mark_used();
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
        books.cell.passed(request.count);
        if matches!(request.direction, Direction::In) {
            books.totals.passed();
        }
        Pass {
            count: request.count,
            ..Pass::plain(slot, now_ns, request.direction)
        }
    }

    #[inline]
    fn refuse(&self, refusal: Refusal) -> Refusal {
        self.books.mark();
        self.books.cell.refused(refusal.kind, self.request.count);
        if matches!(self.request.direction, Direction::In) {
            self.books
                .totals
                .refused(matches!(refusal.kind, RefusalKind::System));
        }
        refusal
    }
}
