//! Sums over seats and lanes: what is in flight, and what the agent reports.

use tidegate_abi::board::{SeatWord, seat};
use tidegate_abi::decision::RefusalKind;
use tidegate_abi::ledger::{CellWord, cell as cell_field, total};
use tidegate_limits::fairness::InFlightCounts;

use super::Ledger;
use super::cell::TAG_MASK;
use crate::board::{Board, Slot, split};
use crate::sync::{Ordering, Word, peek};

/// Counts of a node over all seats, free-running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// Requests in flight, of living seats.
    pub inflight: u64,
    /// Requests admitted.
    pub passed: u64,
    /// Requests that ended well.
    pub success: u64,
    /// Requests that failed.
    pub error: u64,
    /// Response times of those that ended well, ns.
    pub rt_ns: u64,
    /// Requests refused, in the order of [`RefusalKind::ALL`].
    pub refused: [u64; RefusalKind::ALL.len()],
}

/// Counts of a scope's inbound requests, free-running but for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeCounts {
    /// Requests in flight, of living seats.
    pub inflight: u64,
    /// Requests admitted.
    pub passed: u64,
    /// Requests that ended well.
    pub success: u64,
    /// Response times of those, ns.
    pub rt_ns: u64,
    /// Requests refused, for any reason.
    pub refused: u64,
    /// Requests refused because of a scope.
    pub shed: u64,
}

/// What is in flight in the host and in a scope of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopesHeld {
    /// In the host.
    pub host: InFlightCounts,
    /// In the scope.
    pub own: InFlightCounts,
}

impl Ledger {
    /// Requests in flight on a node: over living seats, the sum of their lanes.
    #[inline]
    pub fn node_inflight(&self, board: &Board, slot: Slot) -> u32 {
        let mut sum = 0_u32;
        for seat in 0..board.seats_used() {
            let word = board.seat(seat);
            if word.live {
                sum = sum.saturating_add(self.seat_node_inflight(seat, word, slot));
            }
        }
        sum
    }

    /// Requests in flight of one seat on a node.
    #[inline]
    pub fn seat_node_inflight(&self, seat: u32, word: SeatWord, slot: Slot) -> u32 {
        let tag = CellWord {
            seat: word.generation,
            slot: slot.generation,
            inflight: 0,
        };
        self.sum_lanes(seat, word, |row| {
            let cell = self
                .geometry
                .cell(row, slot.index)
                .and_then(|index| self.cells.get(index))?;
            Some((&cell[cell_field::INFLIGHT], tag))
        })
    }

    /// Inbound requests in flight of one seat.
    #[inline]
    pub fn seat_inflight(&self, seat: u32, word: SeatWord) -> u32 {
        let first = self.geometry.row(seat, 0).unwrap_or(usize::MAX);
        let lanes = usize::try_from(self.geometry.lanes()).unwrap_or(0);
        let rows = first..first.saturating_add(lanes);
        inbound(self.totals.get(rows).unwrap_or(&[]), word.generation)
    }

    /// Inbound requests in flight in a scope; scope 0 is the host and has them all.
    #[inline]
    pub fn scope_inflight(&self, board: &Board, scope: u32) -> u32 {
        let mut sum = 0_u32;
        for seat in 0..board.seats_used() {
            let word = board.seat(seat);
            if word.live && (scope == 0 || board.seat_scope(seat) == scope) {
                sum = sum.saturating_add(self.seat_inflight(seat, word));
            }
        }
        sum
    }

    /// Inbound requests in flight in the host and in the scope of `seat`, and those of them that its service holds. In
    /// the host a service is what shares a scope of its own, elsewhere what shares a name.
    #[inline]
    pub fn scopes_held(&self, board: &Board, seat: u32) -> ScopesHeld {
        let (scope, service) = (board.seat_scope(seat), board.seat_service(seat));
        let (mut host, mut own) = (InFlightCounts::default(), InFlightCounts::default());
        let lanes = usize::try_from(self.geometry.lanes()).unwrap_or(0);
        let mut rows = self.totals;
        for seat in board.seats_in_use() {
            let Some((of_seat, rest)) = rows.split_at_checked(lanes) else {
                break;
            };
            rows = rest;
            // Acquire: pairs with the Release in `SeatWriter::seat`; a new holder finds a clean row.
            let word = SeatWord::unpack(seat[seat::IDENTITY].load(Ordering::Acquire));
            let inflight = if word.live {
                inbound(of_seat, word.generation)
            } else {
                0
            };
            if inflight == 0 {
                continue;
            }
            host.all = host.all.saturating_add(inflight);
            // Relaxed: written before the seat is used.
            if split(seat[seat::SCOPE].load(Ordering::Relaxed)).0 != scope {
                continue;
            }
            own.all = own.all.saturating_add(inflight);
            if seat[seat::SERVICE].load(Ordering::Relaxed) == service {
                own.own = own.own.saturating_add(inflight);
            }
        }
        host.own = if scope == 0 { own.own } else { own.all };
        ScopesHeld { host, own }
    }

    /// Sums the lanes of a seat.
    #[inline]
    fn sum_lanes<'w>(
        &self,
        seat: u32,
        word: SeatWord,
        cell: impl Fn(usize) -> Option<(&'w Word, CellWord)>,
    ) -> u32 {
        let mut sum = 0_u32;
        let first = self.geometry.row(seat, 0).unwrap_or(usize::MAX);
        let lanes = usize::try_from(self.geometry.lanes()).unwrap_or(0);
        let rows = first..first.saturating_add(lanes);
        let totals = self.totals.get(rows.clone()).unwrap_or(&[]);
        for (row, of_lane) in rows.zip(totals) {
            if !is_marked(of_lane, word) {
                continue;
            }
            let Some((cell, tag)) = cell(row) else { break };
            // Acquire: pairs with the AcqRel and Release in `Row::add_inflight`.
            let seen = CellWord::unpack(cell.load(Ordering::Acquire));
            if (seen.seat, seen.slot) == (tag.seat, tag.slot) {
                sum = sum.wrapping_add(seen.inflight);
            }
        }
        whole(sum)
    }

    /// Whether this holder of the seat ever used the lane. Cells of lanes never used are holes of the
    /// memory file, and reading a hole allocates it.
    #[inline]
    pub(super) fn lane_used(&self, row: usize, word: SeatWord) -> bool {
        self.totals
            .get(row)
            .is_some_and(|totals| is_marked(totals, word))
    }

    /// Whether anything was ever asked of a node.
    pub fn is_used(&self, board: &Board, slot: Slot) -> bool {
        self.node_counts(board, slot) != NodeCounts::default()
    }

    /// Counts of a node over every seat ever used, whether its process lives or not.
    pub fn node_counts(&self, board: &Board, slot: Slot) -> NodeCounts {
        let mut counts = NodeCounts::default();
        for seat in 0..board.seats_used() {
            self.add_seat_counts(&mut counts, board.seat(seat), seat, slot);
        }
        counts
    }

    /// Counts of one seat on a node; for a seat whose process died, what is to be kept of it before
    /// [`Ledger::clear_seat`].
    pub fn seat_node_counts(&self, board: &Board, seat: u32, slot: Slot) -> NodeCounts {
        let mut counts = NodeCounts::default();
        self.add_seat_counts(&mut counts, board.seat(seat), seat, slot);
        counts
    }

    fn add_seat_counts(&self, counts: &mut NodeCounts, word: SeatWord, seat: u32, slot: Slot) {
        for lane in 0..self.geometry.lanes() {
            let Some(row) = self.geometry.row(seat, lane) else {
                return;
            };
            if !self.lane_used(row, word) {
                continue;
            }
            let cell = self
                .geometry
                .cell(row, slot.index)
                .and_then(|index| self.cells.get(index));
            if let Some(cell) = cell {
                counts.add_cell(cell);
            }
        }
        if word.live {
            let inflight = self.seat_node_inflight(seat, word, slot);
            counts.inflight = counts.inflight.saturating_add(u64::from(inflight));
        }
    }

    /// Counts of a scope over every seat of it ever used; scope 0 is the host and has them all.
    pub fn scope_counts(&self, board: &Board, scope: u32) -> ScopeCounts {
        let mut counts = ScopeCounts::default();
        for seat in 0..board.seats_used() {
            if scope != 0 && board.seat_scope(seat) != scope {
                continue;
            }
            counts.add_seat(self, board, seat);
        }
        counts
    }

    /// Counts of one seat over all its inbound requests; for a seat whose process died, what is to be
    /// kept of it before [`Ledger::clear_seat`].
    pub fn seat_counts(&self, board: &Board, seat: u32) -> ScopeCounts {
        let mut counts = ScopeCounts::default();
        counts.add_seat(self, board, seat);
        counts
    }
}

/// Inbound requests in flight of a holder of a seat with these lanes.
#[inline(always)]
fn inbound(lanes: &[[Word; total::WORDS]], generation: u32) -> u32 {
    let tag = CellWord {
        seat: generation,
        slot: 0,
        inflight: 0,
    }
    .pack();
    // The word that marks a lane as used by this holder is the one that is summed.
    let sum = lanes.iter().fold(0_u64, |sum, totals| {
        // Acquire: pairs with the AcqRel and Release in `Row::add_inflight`.
        let seen = totals[total::INFLIGHT].load(Ordering::Acquire);
        let counts = seen & TAG_MASK == tag;
        sum.wrapping_add(if counts { seen >> COUNT_BIT } else { 0 })
    });
    whole(CellWord::unpack(sum.wrapping_shl(COUNT_BIT)).inflight)
}

/// First bit of the count in a cell's word.
const COUNT_BIT: u32 = CellWord::ONE.trailing_zeros();

/// A sum of lanes, modulo 2^24. A permit may be given back on another lane than it was taken on; a sum that reads below
/// zero caught one half of that and stands for zero.
const fn whole(sum: u32) -> u32 {
    let sum = sum & CellWord::COUNT_MASK;
    if sum > CellWord::COUNT_MASK / 2 {
        0
    } else {
        sum
    }
}

/// Whether the totals of a lane are those of a holder of its seat.
#[inline(always)]
fn is_marked(totals: &[Word; total::WORDS], word: SeatWord) -> bool {
    let mark = totals[total::INFLIGHT].load(Ordering::Acquire);
    CellWord::unpack(mark).seat == word.generation
}

impl NodeCounts {
    /// Requests refused by rules of a kind.
    pub fn refused_by(&self, kind: RefusalKind) -> u64 {
        let kinds = RefusalKind::ALL.iter().zip(self.refused);
        kinds
            .filter(|(known, _count)| **known == kind)
            .map(|(_known, count)| count)
            .sum()
    }

    fn add_cell(&mut self, cell: &[Word; cell_field::WORDS]) {
        let word = |field: usize| peek(cell, field);
        let add = |sum: &mut u64, amount: u64| *sum = sum.wrapping_add(amount);
        add(&mut self.passed, word(cell_field::PASSED));
        add(&mut self.success, word(cell_field::SUCCESS));
        add(&mut self.error, word(cell_field::ERROR));
        add(&mut self.rt_ns, word(cell_field::RT_NS));
        let (degrade, param) = split(word(cell_field::REFUSED_DEGRADE_PARAM));
        let (system, authority) = split(word(cell_field::REFUSED_SYSTEM_AUTHORITY));
        let flow = word(cell_field::REFUSED_FLOW);
        for (sum, kind) in self.refused.iter_mut().zip(RefusalKind::ALL) {
            add(
                sum,
                match kind {
                    RefusalKind::Authority => u64::from(authority),
                    RefusalKind::System => u64::from(system),
                    RefusalKind::Param => u64::from(param),
                    RefusalKind::Flow => flow,
                    RefusalKind::Degrade => u64::from(degrade),
                },
            );
        }
    }

    /// Adds the free-running counts of another; what is in flight is not kept, it belongs to seats.
    pub fn keep(&mut self, other: &Self) {
        let add = |sum: &mut u64, amount: u64| *sum = sum.wrapping_add(amount);
        add(&mut self.passed, other.passed);
        add(&mut self.success, other.success);
        add(&mut self.error, other.error);
        add(&mut self.rt_ns, other.rt_ns);
        for (sum, amount) in self.refused.iter_mut().zip(other.refused) {
            add(sum, amount);
        }
    }
}

impl ScopeCounts {
    /// Adds the free-running counts of another; what is in flight is not kept, it belongs to seats.
    pub fn keep(&mut self, other: &Self) {
        let add = |sum: &mut u64, amount: u64| *sum = sum.wrapping_add(amount);
        add(&mut self.passed, other.passed);
        add(&mut self.success, other.success);
        add(&mut self.rt_ns, other.rt_ns);
        add(&mut self.refused, other.refused);
        add(&mut self.shed, other.shed);
    }

    fn add_seat(&mut self, ledger: &Ledger, board: &Board, seat: u32) {
        for lane in 0..ledger.geometry.lanes() {
            let row = ledger.geometry.row(seat, lane);
            if let Some(totals) = row.and_then(|row| ledger.totals.get(row)) {
                self.add_totals(totals);
            }
        }
        let word = board.seat(seat);
        if word.live {
            let inflight = u64::from(ledger.seat_inflight(seat, word));
            self.inflight = self.inflight.saturating_add(inflight);
        }
    }

    fn add_totals(&mut self, totals: &[Word; total::WORDS]) {
        let word = |field: usize| peek(totals, field);
        let add = |sum: &mut u64, amount: u64| *sum = sum.wrapping_add(amount);
        add(&mut self.passed, word(total::PASSED));
        add(&mut self.success, word(total::SUCCESS));
        add(&mut self.rt_ns, word(total::RT_NS));
        add(&mut self.refused, word(total::REFUSED));
        add(&mut self.shed, word(total::SHED));
    }
}
