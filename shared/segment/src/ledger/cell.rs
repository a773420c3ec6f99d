//! A row: what one lane of one seat writes.

use tidegate_abi::decision::{Outcome, RefusalKind};
use tidegate_abi::ledger::{CellWord, cell as cell_field, total};

use tidegate_limits::probe_budget;

use super::Ledger;
use crate::board::Slot;
use crate::lane::{self, Lane};
use crate::sync::{Ordering, Word};

/// Mask of everything in a cell word but the count.
pub(super) const TAG_MASK: u64 = CellWord::ONE - 1;

/// How a lane's words are written, and for whom.
#[derive(Debug, Clone, Copy)]
struct CellWriter {
    /// Several threads write: read-modify-write instead of plain loads and stores.
    shared: bool,
    /// The word of a cell with nothing in flight, but for the slot.
    seat_tag: u64,
}

/// A row of counters.
type Lines = (
    &'static [Word; total::WORDS],
    &'static [[Word; cell_field::WORDS]],
);

/// The rows of one seat, looked up once for all its decisions.
///
/// The list of them is never freed: there is one for each session with an agent.
#[derive(Clone, Copy)]
pub struct SeatRows {
    shared: Option<Lines>,
    /// From lane 1 on.
    own: &'static [Lines],
    seat_tag: u64,
}

impl core::fmt::Debug for SeatRows {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SeatRows")
            .field("lanes", &self.own.len().saturating_add(1))
            .finish_non_exhaustive()
    }
}

/// The row of counters that a thread writes.
#[derive(Clone, Copy)]
pub struct CounterRow {
    lines: Lines,
    pen: CellWriter,
}

impl core::fmt::Debug for CounterRow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Row")
            .field("pen", &self.pen)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// The rows of a seat; of no seat, none.
    pub fn seat_rows(&self, seat: u32, seat_generation: u32) -> SeatRows {
        let own = (1..self.geometry.lanes()).filter_map(|lane| self.lines(seat, lane));
        SeatRows {
            shared: self.lines(seat, 0),
            own: own.collect::<Vec<Lines>>().leak(),
            seat_tag: seat_tag(seat_generation),
        }
    }

    fn lines(&self, seat: u32, lane: u32) -> Option<Lines> {
        let row = self.geometry.row(seat, lane)?;
        let length = usize::try_from(self.geometry.resources()).ok()?;
        let start = self.geometry.cell(row, 0)?;
        let cells = self.cells.get(start..start.saturating_add(length))?;
        Some((self.totals.get(row)?, cells))
    }

    /// The row of a lane of a seat.
    pub fn row(&self, seat: u32, seat_generation: u32, lane: Lane) -> Option<CounterRow> {
        let lane = lane::taken(lane).within(self.geometry.lanes());
        Some(CounterRow {
            lines: self.lines(seat, lane)?,
            pen: CellWriter {
                shared: lane == 0,
                seat_tag: seat_tag(seat_generation),
            },
        })
    }
}

impl SeatRows {
    /// The row of a lane; a thread that has none yet takes one.
    #[inline(always)]
    pub fn row(&self, lane: Lane) -> Option<CounterRow> {
        match self.own_row(lane::taken(lane)) {
            Some(row) => Some(row),
            None => self.shared_row(),
        }
    }

    /// The row of a lane that one thread writes; `None` if the lane is the shared one or does not exist.
    #[inline(always)]
    pub fn own_row(&self, lane: Lane) -> Option<CounterRow> {
        // One comparison: the shared lane's number wraps to the largest.
        let own = usize::try_from(lane.number().wrapping_sub(1)).ok()?;
        Some(self.over(self.own.get(own)?, false))
    }

    /// The row that any thread may write.
    #[inline(always)]
    pub fn shared_row(&self) -> Option<CounterRow> {
        Some(self.over(self.shared.as_ref()?, true))
    }

    #[inline(always)]
    const fn over(&self, lines: &Lines, shared: bool) -> CounterRow {
        CounterRow {
            lines: *lines,
            pen: CellWriter {
                shared,
                seat_tag: self.seat_tag,
            },
        }
    }
}

impl CounterRow {
    /// The totals of the row.
    #[inline(always)]
    pub const fn totals(&self) -> Totals {
        Totals {
            line: self.lines.0,
            pen: self.pen,
        }
    }

    /// The cell of the row for a node.
    #[inline(always)]
    pub fn cell(&self, slot: Slot) -> Option<Cell> {
        Some(Cell {
            line: self.lines.1.get(usize::try_from(slot.index).ok()?)?,
            pen: self.pen,
            slot_generation: slot.generation,
        })
    }
}

/// The word of nothing in flight for a seat and slot generation 0.
const fn seat_tag(seat_generation: u32) -> u64 {
    CellWord {
        seat: seat_generation,
        slot: 0,
        inflight: 0,
    }
    .pack()
}

impl CellWriter {
    /// Adds to a free-running counter.
    #[inline(always)]
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
    #[inline(always)]
    const fn tag(self, slot_generation: u16) -> u64 {
        self.seat_tag | slot_generation as u64
    }

    /// Adds `change` to the requests in flight in a word that carries `tag`; a word with another tag
    /// was left by somebody else and starts afresh.
    #[inline(always)]
    fn add_inflight(self, word: &Word, tag: u64, change: u64) {
        let next = |seen: u64| {
            let counted = if seen & TAG_MASK == tag { seen } else { tag };
            counted.wrapping_add(change)
        };
        self.replace(word, next);
    }

    /// Replaces a word of requests in flight.
    #[inline(always)]
    fn replace(self, word: &Word, next: impl Fn(u64) -> u64) {
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

/// A word of requests in flight that was found to carry the tag of its seat and slot.
#[derive(Debug, Clone, Copy)]
pub struct InFlightWord {
    word: &'static Word,
    pen: CellWriter,
}

impl InFlightWord {
    #[inline(always)]
    fn find(word: &'static Word, tag: u64, pen: CellWriter) -> Option<Self> {
        // Acquire: pairs with the AcqRel in `CellWriter::replace`; whoever marked a cell has marked its lane before.
        let seen = word.load(Ordering::Acquire);
        (seen & TAG_MASK == tag).then_some(Self { word, pen })
    }

    /// Takes a place.
    #[inline(always)]
    pub fn take(self) {
        self.add(CellWord::ONE);
    }

    /// Gives a place back.
    #[inline(always)]
    pub fn give_back(self) {
        self.add(MINUS_ONE);
    }

    #[inline(always)]
    fn add(self, change: u64) {
        self.pen
            .replace(self.word, |seen| seen.wrapping_add(change));
    }
}

/// Totals of a lane over all inbound requests.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    line: &'static [Word; total::WORDS],
    pen: CellWriter,
}

impl Totals {
    #[inline(always)]
    fn add_inflight(&self, change: u64) {
        self.pen
            .add_inflight(&self.line[total::INFLIGHT], self.pen.tag(0), change);
    }

    /// The inbound requests in flight, for a lane that has worked for this seat: one whose cell says so
    /// (see [`Cell::places`]) has marked its totals before.
    #[inline(always)]
    pub const fn places(&self) -> InFlightWord {
        InFlightWord {
            word: &self.line[total::INFLIGHT],
            pen: self.pen,
        }
    }

    /// A request was admitted.
    #[inline(always)]
    pub fn passed(&self) {
        self.count_passed();
        self.add_inflight(CellWord::ONE);
    }

    /// The same for one whose place was taken before.
    #[inline(always)]
    pub fn count_passed(&self) {
        self.pen.add(&self.line[total::PASSED], 1);
    }

    /// Marks the lane as used by this seat, so that its cells are looked at.
    #[inline(always)]
    pub fn mark_used(&self) {
        self.add_inflight(0);
    }

    /// A request was refused; `shed` if because of a scope.
    #[inline(always)]
    pub fn refused(&self, shed: bool) {
        self.pen.add(&self.line[total::REFUSED], 1);
        if shed {
            self.pen.add(&self.line[total::SHED], 1);
        }
    }

    /// Whether a probe is within its budget, which it takes then.
    pub fn takes_probe(&self, now_ns: u64) -> bool {
        let passed = self.all_passed();
        let step = |word| probe_budget::step(word, now_ns, passed);
        self.line[total::PROBES].step(step).unwrap_or(false)
    }

    /// Requests admitted by this lane.
    #[inline(always)]
    pub fn all_passed(&self) -> u64 {
        self.line[total::PASSED].load(Ordering::Relaxed)
    }

    /// A request ended.
    #[inline(always)]
    pub fn ended(&self, outcome: Outcome, rt_ns: u64) {
        self.count_ended(outcome, rt_ns);
        self.add_inflight(MINUS_ONE);
    }

    /// The same for one whose place is given back apart.
    #[inline(always)]
    pub fn count_ended(&self, outcome: Outcome, rt_ns: u64) {
        if matches!(outcome, Outcome::Ok) {
            self.pen.add(&self.line[total::SUCCESS], 1);
            self.pen.add(&self.line[total::RT_NS], rt_ns);
        }
    }

    /// Whether the next admission is one before which the lane sums what its scopes hold.
    #[inline(always)]
    pub fn looks(&self) -> bool {
        self.all_passed() >= self.line[total::NEXT_LOOK].load(Ordering::Relaxed)
    }

    /// Looks again after so many admissions.
    pub fn look_after(&self, admissions: u64) {
        let next = self.all_passed().saturating_add(admissions);
        self.line[total::NEXT_LOOK].store(next, Ordering::Relaxed);
    }

    /// Looks before each admission from now on.
    pub fn look_each_time(&self) {
        self.line[total::NEXT_LOOK].store(0, Ordering::Relaxed);
    }
}

/// One request less; the count is the word's high end, so it wraps modulo 2^24.
const MINUS_ONE: u64 = CellWord::ONE.wrapping_neg();

/// What a lane did on one node.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    line: &'static [Word; cell_field::WORDS],
    pen: CellWriter,
    slot_generation: u16,
}

impl Cell {
    #[inline(always)]
    pub(super) fn add_inflight(&self, change: u64) {
        let tag = self.pen.tag(self.slot_generation);
        self.pen
            .add_inflight(&self.line[cell_field::INFLIGHT], tag, change);
    }

    /// The requests in flight, if the lane has already worked for this seat and slot.
    #[inline(always)]
    pub fn places(&self) -> Option<InFlightWord> {
        let tag = self.pen.tag(self.slot_generation);
        InFlightWord::find(&self.line[cell_field::INFLIGHT], tag, self.pen)
    }

    /// Brings it near.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        crate::near::fetch(self.line);
    }

    /// Whether the lane has already worked for this seat and slot.
    #[inline(always)]
    pub fn used(&self) -> bool {
        self.places().is_some()
    }

    /// Marks the cell as worked on by this seat.
    pub fn mark_used(&self) {
        self.add_inflight(0);
    }

    /// Takes a place: one request more in flight.
    #[inline(always)]
    pub fn take(&self) {
        self.add_inflight(CellWord::ONE);
    }

    /// Gives a place back.
    #[inline(always)]
    pub fn give_back(&self) {
        self.add_inflight(MINUS_ONE);
    }

    /// A request that stands for `count` was admitted; its place was taken before.
    #[inline(always)]
    pub fn passed(&self, count: u32) {
        self.pen
            .add(&self.line[cell_field::PASSED], u64::from(count));
    }

    /// A request that stands for `count` was refused by a rule of this kind.
    #[inline(always)]
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
    #[inline(always)]
    pub fn ended(&self, outcome: Outcome, count: u32, rt_ns: u64) {
        self.count_ended(outcome, count, rt_ns);
        self.give_back();
    }

    /// The same for a request whose place is given back apart.
    #[inline(always)]
    pub fn count_ended(&self, outcome: Outcome, count: u32, rt_ns: u64) {
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
    }
}
