//! A row: what one lane of one seat writes.

use tidegate_abi::decision::{Outcome, RefusalKind};
use tidegate_abi::ledger::{CellWord, cell as cell_field, total};

use super::Ledger;
use crate::board::Slot;
use crate::lane::Lane;
use crate::sync::{Ordering, Word, peek};

/// Mask of everything in a cell word but the count.
const TAG_MASK: u64 = !(CellWord::COUNT_MASK as u64);

/// How a lane's words are written, and for whom.
#[derive(Debug, Clone, Copy)]
struct Pen {
    /// Several threads write: read-modify-write instead of plain loads and stores.
    shared: bool,
    seat_generation: u32,
}

/// The row of counters that a thread writes.
#[derive(Debug, Clone, Copy)]
pub struct Row<'l> {
    ledger: &'l Ledger,
    totals: &'static [Word; total::WORDS],
    index: usize,
    pen: Pen,
}

impl Ledger {
    /// The row of a lane of a seat.
    #[inline]
    pub fn row(&self, seat: u32, seat_generation: u32, lane: Lane) -> Option<Row<'_>> {
        let lane = lane.within(self.geometry.lanes());
        let index = self.geometry.row(seat, lane)?;
        let totals = self.totals.get(index)?;
        let pen = Pen {
            shared: lane == 0,
            seat_generation,
        };
        Some(Row {
            ledger: self,
            totals,
            index,
            pen,
        })
    }
}

impl Row<'_> {
    /// The totals of the row.
    #[inline]
    pub const fn totals(&self) -> Totals {
        Totals {
            line: self.totals,
            pen: self.pen,
        }
    }

    /// The cell of the row for a node.
    #[inline]
    pub fn cell(&self, slot: Slot) -> Option<Cell> {
        let index = self.ledger.geometry.cell(self.index, slot.index)?;
        let line = self.ledger.cells.get(index)?;
        Some(Cell {
            line,
            pen: self.pen,
            slot_generation: slot.generation,
        })
    }
}

impl Pen {
    /// Adds to a free-running counter.
    #[inline]
    fn add(self, word: &Word, amount: u64) {
        if self.shared {
            word.count(amount);
        } else {
            // One writer: the thread that has the lane. Relaxed: a count for readers that tolerate
            // a tick of delay.
            word.store(
                word.load(Ordering::Relaxed).wrapping_add(amount),
                Ordering::Relaxed,
            );
        }
    }

    /// The word of nothing in flight for this seat and a slot.
    #[inline]
    const fn tag(self, slot_generation: u16) -> u64 {
        CellWord {
            seat: self.seat_generation,
            slot: slot_generation,
            inflight: 0,
        }
        .pack()
    }

    /// Adds `change` to the requests in flight in a word that carries `tag`; a word with another tag
    /// was left by somebody else and starts afresh.
    #[inline]
    fn add_inflight(self, word: &Word, tag: u64, change: u64) {
        let next = |seen: u64| {
            let count = if seen & TAG_MASK == tag { seen } else { 0 };
            tag | (count.wrapping_add(change) & u64::from(CellWord::COUNT_MASK))
        };
        if self.shared {
            // AcqRel: an announcement must be seen by whoever sums after it, see the gate's flow
            // step.
            word.change(Ordering::AcqRel, next);
        } else {
            // Release: an exit is seen after what the request did. One writer, so no exchange.
            word.store(next(word.load(Ordering::Relaxed)), Ordering::Release);
        }
    }
}

/// Totals of a lane over all inbound requests.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    line: &'static [Word; total::WORDS],
    pen: Pen,
}

impl Totals {
    #[inline]
    fn add_inflight(&self, change: u64) {
        self.pen
            .add_inflight(&self.line[total::INFLIGHT], self.pen.tag(0), change);
    }

    /// A request was admitted.
    #[inline]
    pub fn passed(&self) {
        self.pen.add(&self.line[total::PASSED], 1);
        self.add_inflight(1);
    }

    /// Marks the lane as used by this seat, so that its cells are looked at.
    #[inline]
    pub fn mark_used(&self) {
        self.add_inflight(0);
    }

    /// A request was refused; `shed` if because of a scope.
    #[inline]
    pub fn refused(&self, shed: bool) {
        self.pen.add(&self.line[total::REFUSED], 1);
        if shed {
            self.pen.add(&self.line[total::SHED], 1);
        }
    }

    /// A probe was admitted past a limit.
    pub fn probe(&self) {
        self.pen.add(&self.line[total::PROBES], 1);
    }

    /// Requests admitted and probes admitted past a limit, by this lane.
    pub fn passed_and_probes(&self) -> (u64, u64) {
        let word = |field: usize| peek(self.line, field);
        (word(total::PASSED), word(total::PROBES))
    }

    /// A request ended.
    #[inline]
    pub fn ended(&self, outcome: Outcome, rt_ns: u64) {
        if matches!(outcome, Outcome::Ok) {
            self.pen.add(&self.line[total::SUCCESS], 1);
            self.pen.add(&self.line[total::RT_NS], rt_ns);
        }
        self.add_inflight(MINUS_ONE);
    }

    /// The tick in which this lane last found its scope near the entry limit.
    #[inline]
    pub fn near_tick(&self) -> u64 {
        self.line[total::NEAR_TICK].load(Ordering::Relaxed)
    }

    /// Remembers that tick.
    pub fn set_near_tick(&self, tick: u64) {
        self.line[total::NEAR_TICK].store(tick, Ordering::Relaxed);
    }
}

/// −1 in two's complement; the mask of the count makes it modulo 2^24.
const MINUS_ONE: u64 = u64::MAX;

/// What a lane did on one node.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    line: &'static [Word; cell_field::WORDS],
    pen: Pen,
    slot_generation: u16,
}

impl Cell {
    #[inline]
    fn add_inflight(&self, change: u64) {
        let tag = self.pen.tag(self.slot_generation);
        self.pen
            .add_inflight(&self.line[cell_field::INFLIGHT], tag, change);
    }

    /// Whether the lane has already worked for this seat and slot.
    #[inline]
    pub fn used(&self) -> bool {
        let seen = self.line[cell_field::INFLIGHT].load(Ordering::Relaxed);
        seen & TAG_MASK == self.pen.tag(self.slot_generation)
    }

    /// Marks the cell as worked on by this seat.
    pub fn mark_used(&self) {
        self.add_inflight(0);
    }

    /// Takes a place: one request more in flight.
    #[inline]
    pub fn take(&self) {
        self.add_inflight(1);
    }

    /// Gives a place back.
    #[inline]
    pub fn give_back(&self) {
        self.add_inflight(MINUS_ONE);
    }

    /// A request that stands for `count` was admitted; its place was taken before.
    #[inline]
    pub fn passed(&self, count: u32) {
        self.pen
            .add(&self.line[cell_field::PASSED], u64::from(count));
    }

    /// A request that stands for `count` was refused by a rule of this kind.
    #[inline]
    pub fn refused(&self, kind: RefusalKind, count: u32) {
        let count = u64::from(count);
        let (word, amount) = match kind {
            RefusalKind::Flow => (&self.line[cell_field::REFUSED_FLOW], count),
            RefusalKind::Degrade => (&self.line[cell_field::REFUSED_DEGRADE_PARAM], count),
            RefusalKind::Param => (&self.line[cell_field::REFUSED_DEGRADE_PARAM], count << 32),
            RefusalKind::System => (&self.line[cell_field::REFUSED_SYSTEM_AUTHORITY], count),
            RefusalKind::Authority => (
                &self.line[cell_field::REFUSED_SYSTEM_AUTHORITY],
                count << 32,
            ),
        };
        self.pen.add(word, amount);
    }

    /// A request that stands for `count` ended and gives its place back; its response time counts as
    /// often.
    #[inline]
    pub fn ended(&self, outcome: Outcome, count: u32, rt_ns: u64) {
        let count = u64::from(count);
        match outcome {
            Outcome::Ok => {
                self.pen.add(&self.line[cell_field::SUCCESS], count);
                self.pen
                    .add(&self.line[cell_field::RT_NS], rt_ns.saturating_mul(count));
            }
            Outcome::Error => self.pen.add(&self.line[cell_field::ERROR], count),
            Outcome::Ignore => {}
        }
        self.give_back();
    }
}
