//! The short way through the flow step: plain concurrency and QPS limits of one resource.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Reason, RefusalKind};
use tidegate_limits::quirks::Quirks;

use super::walk::{WaitingDecision, Walk};
use super::{Ask, Gate, GateVerdict, Place, Refusal, Request, Step};
use crate::board::ResourceRecord;
use crate::clock::Clock;
use crate::ledger::{Cell, Node, WindowAdmission};

impl Gate {
    /// Checks the resource's plain flow rules. The place in flight is reserved first and the pass
    /// window exchanged last, so that only a full window has to undo something.
    #[inline]
    pub(super) fn check_flow<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        record: &ResourceRecord,
    ) -> Result<Place, Refusal> {
        let Some(node) = self.ledger.node(ask.slot.index) else {
            return Ok(Place::Open);
        };
        let taken = if record.needs.any(Needs::CONCURRENCY) {
            Some(self.take_plain_place(ask, record)?)
        } else {
            None
        };
        if record.needs.any(Needs::QPS)
            && let Err(refusal) = pass(ask, record, node)
        {
            if let Some(cell) = taken {
                cell.give_back();
            }
            return Err(refusal);
        }
        let place = if taken.is_some() {
            Place::Taken
        } else {
            Place::Open
        };
        if record
            .needs
            .any(Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY)
        {
            self.observe(ask, record, node, place);
        }
        Ok(place)
    }

    /// The short way of a prioritized request: where the window is full it may borrow of the next half
    /// second, and wait for that.
    #[cold]
    pub(super) fn enter_prioritized<'a, C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        request: Request<'a>,
        record: &ResourceRecord,
    ) -> Step<'a> {
        let refusal = match self.decide_plain(ask, record) {
            Ok(place) => return Step::Done(GateVerdict::Admitted(ask.admit(place))),
            Err(refusal) => refusal,
        };
        let full = matches!(
            (refusal.kind, refusal.reason),
            (RefusalKind::Flow, Reason::Qps)
        );
        let node = self.ledger.node(ask.slot.index).filter(|_node| full);
        let count = ask.request.count;
        let loan = (count, record.qps_limit);
        // With quirks all rules are in the table.
        let wait = node.and_then(|node| node.borrow(ask.clock, ask.now_ns, loan, Quirks::None));
        let Some(wait_ns) = wait else {
            return Step::Done(GateVerdict::Refused(ask.refuse(refusal)));
        };
        self.ledger.count_wait(ask.slot);
        let generation = self.board.rules_generation();
        let begun = Walk::begin(ask.slot, request, ask.now_ns, generation);
        let walk = Walk::borrowed(&begun, record, wait_ns);
        Step::Wait(WaitingDecision::new(
            ask.now_ns.saturating_add(wait_ns),
            &walk,
        ))
    }

    fn take_plain_place<C>(
        &self,
        ask: &Ask<'_, C>,
        record: &ResourceRecord,
    ) -> Result<Cell, Refusal> {
        let (limit, rule) = (record.concurrency_limit, record.concurrency_rule);
        let (node, count) = (self.ledger.node(ask.slot.index), ask.request.count);
        let looks = node.is_none_or(|node| node.refused_lately(ask.now_ns));
        self.take_place(ask.slot, count, limit, looks)
            .map_err(|inflight| {
                if let Some(node) = node {
                    node.count_refused(count, (inflight, limit), ask.now_ns);
                }
                Refusal::concurrency(rule, inflight, limit).spread(ask.now_ns)
            })
    }

    /// Counts what the rules in observe mode would have refused.
    #[cold]
    fn observe<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        record: &ResourceRecord,
        node: Node,
        place: Place,
    ) {
        let count = ask.request.count;
        if record.needs.any(Needs::OBSERVED_CONCURRENCY) {
            let inflight = self.ledger.node_inflight(&self.board, ask.slot);
            let before = inflight.saturating_sub(u32::from(place == Place::Taken));
            let limit = record.observed_concurrency_limit;
            if before.saturating_add(count) > limit {
                node.count_observed(true, (before, limit), ask.now_ns);
            }
        }
        if record.needs.any(Needs::OBSERVED_QPS) {
            // A rule in force has counted the pass already.
            let counted = record.needs.any(Needs::QPS);
            let asked = if counted { 0 } else { count };
            let limit = record.observed_qps_limit;
            if let WindowAdmission::Full { passed, .. } = node.peek(ask.now_ns, asked, limit) {
                let before = passed.saturating_sub(count.saturating_sub(asked));
                node.count_observed(false, (before, limit), ask.now_ns);
            }
            if !counted {
                let _always: WindowAdmission = node.admit(ask.clock, ask.now_ns, count, u32::MAX);
            }
        }
    }
}

/// Counts the pass in the node's window, if its QPS limit allows it.
#[inline]
fn pass<C: Clock>(ask: &Ask<'_, C>, record: &ResourceRecord, node: Node) -> Result<(), Refusal> {
    let limit = node.room(ask.now_ns, record.qps_limit);
    match node.admit(ask.clock, ask.now_ns, ask.request.count, limit) {
        WindowAdmission::Admitted(_epoch) => Ok(()),
        WindowAdmission::Full {
            passed,
            retry_after_ns,
        } => {
            let (rule, limit) = (record.qps_rule, record.qps_limit);
            node.note_full((passed, limit), ask.now_ns);
            let refusal = Refusal::flow(Reason::Qps, rule, passed, limit, retry_after_ns);
            Err(refusal.spread(ask.now_ns))
        }
    }
}
