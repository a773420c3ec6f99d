//! The express way: a resource with at most plain limits, or a QPS limit and a closed breaker, in a calm scope, on a
//! lane that has worked on it before. Most decisions are that, so they get a way without anything else on
//! it, and without a call.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Outcome, Reason, RefusalKind};
use tidegate_limits::breaker::tally::BreakerTally;
use tidegate_limits::breaker::{Completion, closed, open_for_ns};

use super::request::PassedBreaker;
use super::ticket::{ONE, PlainRequest, Ticket, passed_word};
use super::{Gate, Refusal};
use crate::board::{ShortBreaker, Slot};
use crate::clock::Clock;
use crate::lane::Lane;
use crate::ledger::{Cell, CounterRow, InFlightWord, Node, Totals, WindowAdmission};
use crate::sync::{Ordering, Word};

/// Adds a completion to a tally that is of the epoch; `None` = nothing was counted.
#[inline(always)]
fn count_at_once(word: &'static Word, epoch: u64, is_bad: bool) -> Option<u64> {
    // Relaxed: the exchange checks what was read, and the word carries all there is.
    let seen = word.load(Ordering::Relaxed);
    let next = BreakerTally::add_at_once(seen, epoch, is_bad)?;
    match word.exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_before) => Some(next),
        Err(_found) => count_beside_others(word, epoch, is_bad),
    }
}

/// The same after another caller was quicker.
#[cold]
#[inline(never)]
fn count_beside_others(word: &'static Word, epoch: u64, is_bad: bool) -> Option<u64> {
    word.advance(|seen| BreakerTally::add_at_once(seen, epoch, is_bad))
}

/// What a request on the express way writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpressCounters {
    cell: Cell,
    places: InFlightWord,
    /// Only for inbound requests.
    inbound: Option<(Totals, InFlightWord)>,
}

impl ExpressCounters {
    /// The places of a lane that has worked on the slot before.
    #[inline(always)]
    pub(super) fn of(row: &CounterRow, slot: Slot, direction: Direction) -> Option<Self> {
        let (cell, totals) = (row.cell(slot)?, row.totals());
        let inbound = match direction {
            Direction::In => Some((totals, totals.places())),
            Direction::Out => None,
        };
        Some(Self {
            cell,
            places: cell.places()?,
            inbound,
        })
    }

    #[inline(always)]
    pub(super) fn admit(&self) {
        self.places.take();
        self.admit_in_place();
    }

    /// The same for a request that a concurrency rule gave its place on the node.
    #[inline(always)]
    pub(super) fn admit_in_place(&self) {
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
    pub(super) fn refuse(&self, kind: RefusalKind) {
        self.cell.refused(kind, ONE);
        if let Some((totals, _places)) = self.inbound {
            totals.refused(matches!(kind, RefusalKind::System));
        }
    }

    /// The totals of the lane, where the request is inbound.
    pub(super) fn totals(&self) -> Option<Totals> {
        self.inbound.map(|(totals, _places)| totals)
    }
}

impl Gate {
    /// Decides where that takes no more than the express way. `None` = nothing was counted: decide with
    /// [`Gate::express_closely`] or [`Gate::enter_at_length`]. Apart from them for callers that keep the answer in
    /// registers.
    #[inline(always)]
    pub fn express<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        plain: PlainRequest,
    ) -> Option<Result<Ticket, Refusal>> {
        let calm = self.calm_word();
        if calm == 0 && matches!(plain.direction, Direction::In) {
            // Each decision counts: nothing here is of use.
            return None;
        }
        let row = self.rows.own_row(lane)?;
        let slot = plain.slot;
        // Before anything that takes time, so that where these lines are far away they come together.
        row.cell(slot)?.fetch();
        let node = self.ledger.node(slot.index)?;
        node.fetch();
        let head = self.board.head(slot.index)?;
        let now_ns = clock.now_ns();
        let is_short = head.needs.any(Needs::SHORT);
        let is_served = is_short || head.needs.0 & !Needs::QPS == 0;
        if !is_served || head.generation != slot.generation {
            return None;
        }
        let desk = ExpressCounters::of(&row, slot, plain.direction)?;
        let is_calm = match desk.inbound {
            Some((totals, _places)) => {
                self.holds_calm(calm, now_ns) && (!totals.looks() || self.finds_room(lane))
            }
            None => self.seated(),
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
            if let Err(refusal) = self.ask_window(clock, (lane, &desk, node), plain, at) {
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
    pub(super) fn ask_window<C: Clock>(
        &self,
        clock: &C,
        (lane, desk, node): (Lane, &ExpressCounters, Node),
        plain: PlainRequest,
        (now_ns, limit): (u64, u32),
    ) -> Result<(), Option<Refusal>> {
        let slot = plain.slot;
        match node.admit_at_once(now_ns, ONE, limit) {
            Some(WindowAdmission::Admitted(_epoch)) => Ok(()),
            Some(WindowAdmission::Full {
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
        plain: PlainRequest,
        now_ns: u64,
    ) -> Result<(), Option<Refusal>> {
        let slot = plain.slot;
        let limit = self.board.names(slot.index).ok_or(None)?.qps_limit;
        let node = self.ledger.node(slot.index).ok_or(None)?;
        match node.admit(clock, now_ns, ONE, node.room(now_ns, limit)) {
            WindowAdmission::Admitted(_epoch) => Ok(()),
            WindowAdmission::Full {
                passed,
                retry_after_ns,
            } => {
                let row = self.rows.row(lane).ok_or(None)?;
                let desk = ExpressCounters::of(&row, slot, plain.direction).ok_or(None)?;
                Err(self.refuse_full(&desk, slot, (passed, limit, retry_after_ns), now_ns))
            }
        }
    }

    /// The window holds `passed`, which leaves no room below `limit` for `room_ns`. `None` = nothing was
    /// counted: another limit came into force meanwhile.
    #[inline(always)]
    fn refuse_full(
        &self,
        desk: &ExpressCounters,
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
    pub(super) fn refuse_open(
        &self,
        lane: Lane,
        plain: PlainRequest,
        now_ns: u64,
    ) -> Option<Refusal> {
        let slot = plain.slot;
        let (names, breaker) = self.board.short_names(slot.index)?;
        let state = self.ledger.state(names.breaker_state)?;
        let left_ns = open_for_ns(state.word().load(Ordering::Relaxed), now_ns)?;
        if names.needs.any(Needs::QPS) {
            let node = self.ledger.node(slot.index)?;
            let limit = node.room(now_ns, names.qps_limit);
            if !node.peek(now_ns, ONE, limit).admitted() {
                return None;
            }
        }
        let shown = breaker.shown(state.opened_by());
        state.count_refused(false, shown, now_ns);
        let desk = ExpressCounters::of(&self.rows.row(lane)?, slot, plain.direction)?;
        desk.refuse(RefusalKind::Degrade);
        Some(Refusal::breaker(names.other_rule, shown, left_ns).spread(now_ns))
    }

    /// Gives a request back where that takes no more than the express way; `None` = nothing was counted.
    #[inline(always)]
    pub(super) fn exit_express(
        &self,
        row: &CounterRow,
        ticket: &Ticket,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<()> {
        if !self.seated() {
            return None;
        }
        let desk = ExpressCounters::of(row, ticket.slot(), ticket.direction())?;
        let rt_ns = now_ns.saturating_sub(ticket.entered_ns);
        if let Some(state) = ticket.breaker_state() {
            self.complete_short(ticket, state, (outcome, rt_ns), now_ns)?;
        }
        desk.end(outcome, rt_ns);
        self.ledger.count_time(ticket.slot(), (outcome, rt_ns), ONE);
        Some(())
    }

    /// Tells the breaker of a short record of a completion.
    #[inline(always)]
    fn complete_short(
        &self,
        ticket: &Ticket,
        line: u32,
        (outcome, rt_ns): (Outcome, u64),
        now_ns: u64,
    ) -> Option<()> {
        if matches!(outcome, Outcome::Ignore) {
            return Some(());
        }
        let breaker = self.board.short_breaker(ticket.slot().index)?;
        if breaker.state != line {
            return None;
        }
        let state = self.ledger.state(line)?;
        let is_bad = breaker.is_bad(rt_ns, matches!(outcome, Outcome::Error));
        let epoch = breaker.interval.epoch(now_ns);
        let tally = BreakerTally::of(count_at_once(state.second(), epoch, is_bad)?);
        // Where nothing was bad, a closed breaker stays closed, and one in another state is not for a request
        // that passed it while it was closed to change.
        if tally.bad() != 0 {
            self.judge_closely(ticket, (is_bad, tally), now_ns);
        }
        Some(())
    }

    /// Lets a completion that is in the tally decide, where there may be something to decide.
    #[inline(never)]
    fn judge_closely(&self, ticket: &Ticket, (is_bad, tally): (bool, BreakerTally), now_ns: u64) {
        let Some(PassedBreaker {
            state: line,
            generation,
            ..
        }) = ticket.passed()
        else {
            return;
        };
        let call = Completion {
            is_bad,
            generation: Some(generation),
        };
        let state = self.ledger.state(line);
        let is_closed =
            state.is_some_and(|state| closed(state.word().load(Ordering::Relaxed)).is_some());
        let breaker = self.board.short_breaker(ticket.slot().index);
        let stays = |breaker: ShortBreaker| breaker.state == line && breaker.stays_closed(tally);
        if !is_closed || !breaker.is_some_and(stays) {
            self.judge_short(ticket.slot(), line, (call, tally), now_ns);
        }
    }
}
