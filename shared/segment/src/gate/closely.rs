//! The express way of those to whom [`Gate::express`] gave no answer: on the lane that threads share, behind a plain
//! concurrency rule, and in a scope that counts, as every scope in overload does. Most decisions of a busy host are these.
//!
//! It is a call of its own: even one that is never taken costs a plain pass 13 instructions.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::RefusalKind;
use tidegate_limits::breaker::closed;

use super::express::ExpressCounters;
use super::request::ClassAndOrigin;
use super::scope::ScopeQuestion;
use super::ticket::{ONE, PlainRequest, Ticket, passed_word};
use super::{Gate, Refusal};
use crate::board::Slot;
use crate::clock::Clock;
use crate::lane::{self, Lane};
use crate::ledger::{Cell, Node};
use crate::sync::Ordering;

impl Gate {
    /// Decides where [`Gate::express`] gave no answer and no rule of the table is concerned but a breaker. `None` =
    /// decide with [`Gate::enter_at_length`].
    #[inline(never)]
    pub fn express_closely<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        plain: PlainRequest,
        caller: ClassAndOrigin,
    ) -> Option<Result<Ticket, Refusal>> {
        let (lane, slot) = (lane::taken(lane), plain.slot);
        let (head, concurrency) = self.board.close_look(slot.index)?;
        let is_short = head.needs.any(Needs::SHORT);
        let is_served = is_short || head.needs.0 & !(Needs::QPS | Needs::CONCURRENCY) == 0;
        if !is_served || head.generation != slot.generation {
            return None;
        }
        let desk = ExpressCounters::of(&self.rows.row(lane)?, slot, plain.direction)?;
        let now_ns = clock.now_ns();
        let is_calm = match desk.totals() {
            Some(totals) => self.is_calm_seat(now_ns, totals),
            None => self.seated(),
        };
        // The last things that leave the decision to the long way: a scope counts what it was asked.
        if !is_calm && !self.seated() {
            return None;
        }
        let breaker = if is_short {
            let state = self.ledger.state(head.breaker_state)?;
            // Relaxed: one word says all.
            match closed(state.word().load(Ordering::Relaxed)) {
                Some(generation) => passed_word(head.breaker_state, generation),
                None if is_calm => return self.refuse_open(lane, plain, now_ns).map(Err),
                None => return None,
            }
        } else {
            0
        };
        if !is_calm && let Some(totals) = desk.totals() {
            let arrival = ScopeQuestion {
                now_ns,
                totals,
                caller,
                waiting: None,
            };
            if let Err(refusal) = self.check_scopes_closely(&arrival) {
                desk.refuse(refusal.kind);
                return Some(Err(refusal));
            }
        }
        let node = self.ledger.node(slot.index)?;
        let place = match concurrency.map(|rule| self.take_plain(slot, node, rule, now_ns)) {
            Some(Err(refusal)) => {
                desk.refuse(RefusalKind::Flow);
                return Some(Err(refusal));
            }
            taken => taken.and_then(Result::ok),
        };
        // Its place first, since a window that is full is told by its exchange, which is the last thing that can fail.
        if head.needs.any(Needs::QPS) {
            let at = (now_ns, head.qps_limit);
            if let Err(refusal) = self.ask_window(clock, (lane, &desk, node), plain, at) {
                if let Some(cell) = place {
                    cell.give_back();
                }
                // No answer here means that another set of rules came into force just now.
                return refusal.map(Err);
            }
        }
        match place {
            Some(_taken) => desk.admit_in_place(),
            None => desk.admit(),
        }
        Some(Ok(Ticket::of(plain, now_ns, breaker)))
    }

    /// Takes the place that a plain concurrency rule of this limit and number gives.
    ///
    /// # Errors
    /// The refusal, which the node has counted.
    fn take_plain(
        &self,
        slot: Slot,
        node: Node,
        (limit, rule): (u32, u32),
        now_ns: u64,
    ) -> Result<Cell, Refusal> {
        let looks = node.refused_lately(now_ns);
        self.take_place(slot, ONE, limit, looks)
            .map_err(|inflight| {
                node.count_refused(ONE, (inflight, limit), now_ns);
                Refusal::concurrency(rule, inflight, limit).spread(now_ns)
            })
    }
}
