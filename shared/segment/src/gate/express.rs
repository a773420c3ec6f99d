//! The express way: a resource with at most a plain QPS limit and a closed breaker, in a calm scope, on a
//! lane that has worked on it before. Most decisions are that, so they get a way without anything else on
//! it, and without a call.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Outcome, Reason, RefusalKind};
use tidegate_limits::breaker::tally::Tally;
use tidegate_limits::breaker::{Completion, closed, open_for_ns};

use super::request::{Kept, Passed};
use super::{Gate, Pass, Refusal, Request};
use crate::board::{ShortBreaker, Slot};
use crate::clock::Clock;
use crate::lane::Lane;
use crate::ledger::{Admission, Cell, Places, Row, Totals};
use crate::sync::Ordering;

/// One request that asks for nothing but what the express way knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The resource.
    pub slot: Slot,
    /// Which way the work goes.
    pub direction: Direction,
}

/// How many requests one on the express way stands for.
const ONE: u32 = 1;

/// An admitted request that came the express way: a [`Pass`] that fits into registers. It is given back
/// with [`Gate::give_back`].
///
/// Whole words alone: what is written in small parts and read as one soon after makes a processor wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an admitted request stays in flight until it is given back with `Gate::give_back`"]
pub struct Ticket {
    /// `[zero 15 | outbound 1 | generation 16 | slot 32]`.
    place: u64,
    entered_ns: u64,
    /// `[zero 15 | passed 1 | generation 16 | line of state 32]` of its breaker.
    breaker: u64,
}

/// Bit 48 of the words above.
const FLAG: u64 = 1 << 48;

impl Plain {
    /// The request, if it is plain.
    #[inline(always)]
    pub const fn of(slot: Slot, request: &Request<'_>) -> Option<Self> {
        let named = request.origin.node.is_some() || request.context.node.is_some();
        if request.prioritized || named || request.count != ONE {
            return None;
        }
        Some(Self {
            slot,
            direction: request.direction,
        })
    }
}

impl Ticket {
    #[inline(always)]
    const fn slot(self) -> Slot {
        Slot {
            index: (self.place & 0xffff_ffff) as u32,
            generation: (self.place >> 32 & 0xffff) as u16,
        }
    }

    #[inline(always)]
    const fn direction(self) -> Direction {
        if self.place & FLAG == 0 {
            Direction::In
        } else {
            Direction::Out
        }
    }

    #[inline(always)]
    const fn passed(self) -> Option<Passed> {
        if self.breaker & FLAG == 0 {
            return None;
        }
        Some(Passed {
            state: (self.breaker & 0xffff_ffff) as u32,
            generation: (self.breaker >> 32 & 0xffff) as u16,
            probe: false,
        })
    }

    #[inline(always)]
    const fn of(plain: Plain, entered_ns: u64, breaker: u64) -> Self {
        let outbound = match plain.direction {
            Direction::In => 0,
            Direction::Out => FLAG,
        };
        Self {
            place: plain.slot.index as u64 | (plain.slot.generation as u64) << 32 | outbound,
            entered_ns,
            breaker,
        }
    }
}

/// The word of a breaker that was closed.
#[inline(always)]
const fn passed_word(state: u32, generation: u16) -> u64 {
    state as u64 | (generation as u64) << 32 | FLAG
}

impl From<Ticket> for Pass {
    #[inline]
    fn from(ticket: Ticket) -> Self {
        Self {
            kept: ticket.passed().map_or(Kept::Nothing, Kept::Breaker),
            ..Self::plain(ticket.slot(), ticket.entered_ns, ticket.direction())
        }
    }
}

impl Pass {
    /// The same as a ticket; `None` if it holds more than that.
    #[inline(always)]
    pub(super) const fn ticket(&self) -> Option<Ticket> {
        let breaker = match self.kept {
            Kept::Nothing => 0,
            Kept::Breaker(passed) => passed_word(passed.state, passed.generation),
            Kept::Walked(_) => return None,
        };
        let plain = Plain {
            slot: self.slot,
            direction: self.direction,
        };
        if self.count != ONE {
            return None;
        }
        Some(Ticket::of(plain, self.entered_ns, breaker))
    }
}

/// What a request on the express way writes.
#[derive(Debug, Clone, Copy)]
struct Desk {
    cell: Cell,
    places: Places,
    /// Only for inbound requests.
    inbound: Option<(Totals, Places)>,
}

impl Desk {
    /// The places of a lane that has worked on the slot before.
    #[inline(always)]
    fn of(row: &Row, slot: Slot, direction: Direction) -> Option<Self> {
        let (cell, totals) = (row.cell(slot)?, row.totals());
        let inbound = match direction {
            Direction::In => Some((totals, totals.places()?)),
            Direction::Out => None,
        };
        Some(Self {
            cell,
            places: cell.places()?,
            inbound,
        })
    }

    #[inline(always)]
    fn admit(&self) {
        self.places.take();
        self.cell.passed(ONE);
        if let Some((totals, places)) = self.inbound {
            places.take();
            totals.count_passed();
        }
    }

    #[inline(always)]
    fn end(&self, outcome: Outcome, rt_ns: u64) {
        self.cell.count_ended(outcome, ONE, rt_ns);
        self.places.give_back();
        if let Some((totals, places)) = self.inbound {
            totals.count_ended(outcome, rt_ns);
            places.give_back();
        }
    }

    #[inline(always)]
    fn refuse(&self, kind: RefusalKind) {
        self.cell.refused(kind, ONE);
        if let Some((totals, _places)) = self.inbound {
            totals.refused(false);
        }
    }
}

impl Gate {
    /// Decides where that takes no more than the express way. `None` = nothing was counted: decide with
    /// [`Gate::enter_at_length`]. Apart from that for callers that keep the answer in registers.
    #[inline(always)]
    pub fn express<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        plain: Plain,
    ) -> Option<Result<Ticket, Refusal>> {
        self.express_on(clock, (lane, self.rows.own_row(lane)?), plain)
    }

    /// The same on the lane that threads share, where that is the caller's; apart, so that the other has
    /// no choice to make.
    pub(super) fn express_shared<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        plain: Plain,
    ) -> Option<Result<Ticket, Refusal>> {
        if self.rows.own_row(lane).is_some() {
            return None;
        }
        let row = self.rows.shared_row()?;
        self.express_on(clock, (Lane::SHARED, row), plain)
    }

    #[inline(always)]
    fn express_on<C: Clock>(
        &self,
        clock: &C,
        (lane, row): (Lane, Row),
        plain: Plain,
    ) -> Option<Result<Ticket, Refusal>> {
        let now_ns = clock.now_ns();
        let slot = plain.slot;
        let head = self.board.head(slot.index)?;
        let is_short = head.needs.any(Needs::SHORT);
        let is_served = is_short || head.needs.0 & !Needs::QPS == 0;
        if !is_served || head.generation != slot.generation || !self.seated() {
            return None;
        }
        let desk = Desk::of(&row, slot, plain.direction)?;
        let is_calm = match desk.inbound {
            Some((totals, _places)) => self.scopes_are_calm(now_ns, totals),
            None => true,
        };
        if !is_calm {
            return None;
        }
        let breaker = if is_short {
            let state = self.ledger.state(head.breaker_state)?;
            // Relaxed: one word says all.
            match closed(state.word().load(Ordering::Relaxed)) {
                Some(generation) => passed_word(head.breaker_state, generation),
                None => return self.refuse_open(lane, plain, now_ns).map(Err),
            }
        } else {
            0
        };
        if head.needs.any(Needs::QPS) {
            let at = (now_ns, head.qps_limit);
            if let Err(refusal) = self.ask_window(clock, (lane, &desk), plain, at) {
                return refusal.map(Err);
            }
        }
        desk.admit();
        Some(Ok(Ticket::of(plain, now_ns, breaker)))
    }

    /// Counts a pass in the window, or a refusal where that is full.
    ///
    /// # Errors
    /// The refusal, or `None` where that takes the long way; nothing was counted then.
    #[inline(always)]
    fn ask_window<C: Clock>(
        &self,
        clock: &C,
        (lane, desk): (Lane, &Desk),
        plain: Plain,
        (now_ns, limit): (u64, u32),
    ) -> Result<(), Option<Refusal>> {
        let slot = plain.slot;
        let node = self.ledger.node(slot.index).ok_or(None)?;
        match node.admit_at_once(now_ns, ONE, limit) {
            Some(Admission::Admitted(_epoch)) => Ok(()),
            Some(Admission::Full {
                passed,
                retry_after_ns,
            }) => Err(self.refuse_full(desk, slot, (passed, limit, retry_after_ns), now_ns)),
            None => self.admit_closely(clock, lane, plain, now_ns),
        }
    }

    /// The window is at its edge, another caller's, or lent from. Looks everything up again, so that a
    /// pass need not keep it at hand.
    ///
    /// # Errors
    /// The refusal, or `None` where that takes the long way.
    #[inline(never)]
    fn admit_closely<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        plain: Plain,
        now_ns: u64,
    ) -> Result<(), Option<Refusal>> {
        let slot = plain.slot;
        let limit = self.board.names(slot.index).ok_or(None)?.qps_limit;
        let node = self.ledger.node(slot.index).ok_or(None)?;
        match node.admit(clock, now_ns, ONE, node.room(now_ns, limit)) {
            Admission::Admitted(_epoch) => Ok(()),
            Admission::Full {
                passed,
                retry_after_ns,
            } => {
                let row = self.rows.row(lane).ok_or(None)?;
                let desk = Desk::of(&row, slot, plain.direction).ok_or(None)?;
                Err(self.refuse_full(&desk, slot, (passed, limit, retry_after_ns), now_ns))
            }
        }
    }

    /// The window holds `passed`, which leaves no room below `limit` for `room_ns`. `None` = nothing was
    /// counted: another limit came into force meanwhile.
    #[inline(always)]
    fn refuse_full(
        &self,
        desk: &Desk,
        slot: Slot,
        (passed, limit, room_ns): (u32, u32, u64),
        now_ns: u64,
    ) -> Option<Refusal> {
        let names = self.board.names(slot.index)?;
        if names.qps_limit != limit || !names.needs.any(Needs::QPS) {
            return None;
        }
        if names.needs.any(Needs::SHORT) {
            if let Some(state) = self.ledger.state(names.qps_state) {
                state.count_refused(false, (passed, limit), now_ns);
            }
        } else if let Some(node) = self.ledger.node(slot.index) {
            node.note_full((passed, limit), now_ns);
        }
        desk.refuse(RefusalKind::Flow);
        Some(Refusal::flow(Reason::Qps, names.qps_rule, passed, limit, room_ns).spread(now_ns))
    }

    /// The breaker is not closed. It refuses at once while it is open, but flow rules come before it.
    #[inline(never)]
    fn refuse_open(&self, lane: Lane, plain: Plain, now_ns: u64) -> Option<Refusal> {
        let slot = plain.slot;
        let names = self.board.names(slot.index)?;
        let state = self.ledger.state(names.breaker_state)?;
        let left_ns = open_for_ns(state.word().load(Ordering::Relaxed), now_ns)?;
        if names.needs.any(Needs::QPS) {
            let node = self.ledger.node(slot.index)?;
            let limit = node.room(now_ns, names.qps_limit);
            if !node.peek(now_ns, ONE, limit).admitted() {
                return None;
            }
        }
        let breaker = self.board.short_breaker(slot.index)?;
        let shown = breaker.shown(state.opened_by());
        state.count_refused(false, shown, now_ns);
        let desk = Desk::of(&self.rows.row(lane)?, slot, plain.direction)?;
        desk.refuse(RefusalKind::Degrade);
        Some(Refusal::breaker(names.other_rule, shown, left_ns).spread(now_ns))
    }

    /// Gives a request back where that takes no more than the express way; `None` = nothing was counted.
    #[inline(always)]
    pub(super) fn exit_express(
        &self,
        row: &Row,
        ticket: &Ticket,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<()> {
        if !self.seated() {
            return None;
        }
        let desk = Desk::of(row, ticket.slot(), ticket.direction())?;
        let rt_ns = now_ns.saturating_sub(ticket.entered_ns);
        if let Some(passed) = ticket.passed() {
            self.complete_short(ticket.slot(), passed, (outcome, rt_ns), now_ns)?;
        }
        desk.end(outcome, rt_ns);
        Some(())
    }

    /// Tells the breaker of a short record of a completion.
    #[inline(always)]
    fn complete_short(
        &self,
        slot: Slot,
        passed: Passed,
        (outcome, rt_ns): (Outcome, u64),
        now_ns: u64,
    ) -> Option<()> {
        if matches!(outcome, Outcome::Ignore) {
            return Some(());
        }
        let breaker = self.board.short_breaker(slot.index)?;
        if breaker.state != passed.state {
            return None;
        }
        let state = self.ledger.state(breaker.state)?;
        let is_bad = breaker.is_bad(rt_ns, matches!(outcome, Outcome::Error));
        let epoch = breaker.interval.epoch(now_ns);
        let counted = state
            .second()
            .advance(|word| Tally::add_at_once(word, epoch, is_bad))?;
        let tally = Tally::of(counted);
        // Relaxed: one word says all.
        let is_closed = closed(state.word().load(Ordering::Relaxed)).is_some();
        if !is_closed || tally.bad() != 0 {
            let call = Completion {
                is_bad,
                generation: Some(passed.generation),
            };
            self.judge_closely(slot, passed.state, (call, tally), now_ns);
        }
        Some(())
    }

    /// Lets a completion that is in the tally decide, where there may be something to decide.
    #[inline(never)]
    fn judge_closely(&self, slot: Slot, line: u32, ended: (Completion, Tally), now_ns: u64) {
        let state = self.ledger.state(line);
        let is_closed =
            state.is_some_and(|state| closed(state.word().load(Ordering::Relaxed)).is_some());
        let breaker = self.board.short_breaker(slot.index);
        let stays = |breaker: ShortBreaker| breaker.state == line && breaker.stays_closed(ended.1);
        if !is_closed || !breaker.is_some_and(stays) {
            self.judge_short(slot, line, ended, now_ns);
        }
    }
}
