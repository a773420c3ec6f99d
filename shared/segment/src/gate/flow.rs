//! The flow step: concurrency and QPS limits of one resource.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::Reason;

use super::{Ask, Gate, Place, Refusal};
use crate::board::Record;
use crate::clock::Clock;
use crate::lane::Lane;
use crate::ledger::{Admission, Cell, Node};
use crate::sync::{Ordering, fence};

/// Callers that announced at the same time may all have to retract although one of them would have
/// fitted; each tries again this often.
const TRIES: u32 = 16;

/// When to come again after a concurrency rule refused, ns: nobody knows when a request ends.
const CONCURRENCY_WAIT_NS: u64 = 100_000_000;

impl Gate {
    /// Checks the resource's flow rules. The place in flight is reserved first and the pass window
    /// exchanged last, so that only a full window has to undo something.
    #[inline]
    pub(super) fn check_flow<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        record: &Record,
    ) -> Result<Place, Refusal> {
        let Some(node) = self.ledger.node(ask.slot.index) else {
            return Ok(Place::Open);
        };
        let taken = if record.needs.any(Needs::CONCURRENCY) {
            Some(self.take_place(ask, record)?)
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

    /// Reserves a place in flight: announces it in the seat's own cell, sums all seats, retracts if
    /// that is over the limit. Of any two callers the one that announces later sees the other, so
    /// the limit is never exceeded.
    fn take_place<C>(&self, ask: &Ask<'_, C>, record: &Record) -> Result<Cell, Refusal> {
        let (slot, count, limit) = (ask.slot, ask.request.count, record.concurrency_limit);
        let over = |inflight: u32| {
            let (reason, rule) = (Reason::Concurrency, record.concurrency_rule);
            Refusal::flow(reason, rule, inflight, limit, CONCURRENCY_WAIT_NS).spread(ask.now_ns)
        };
        let row = self.ledger.row(self.seat, self.generation, Lane::SHARED);
        let row = row.ok_or_else(|| over(0))?;
        let cell = row.cell(slot).ok_or_else(|| over(0))?;
        if !cell.used() {
            row.totals().mark_used();
        }
        let mut seen = 0;
        for _try in 0..TRIES {
            seen = self.ledger.node_inflight(&self.board, slot);
            if seen.saturating_add(count) > limit {
                break;
            }
            cell.take();
            // SeqCst: orders the announcement before the sum, for all callers in one order.
            fence(Ordering::SeqCst);
            let with_mine = self.ledger.node_inflight(&self.board, slot);
            if with_mine.saturating_sub(1).saturating_add(count) <= limit {
                return Ok(cell);
            }
            cell.give_back();
            core::hint::spin_loop();
        }
        Err(over(seen))
    }

    /// Counts what the rules in observe mode would have refused.
    #[cold]
    fn observe<C: Clock>(&self, ask: &Ask<'_, C>, record: &Record, node: Node, place: Place) {
        let count = ask.request.count;
        if record.needs.any(Needs::OBSERVED_CONCURRENCY) {
            let inflight = self.ledger.node_inflight(&self.board, ask.slot);
            let before = inflight.saturating_sub(u32::from(place == Place::Taken));
            if before.saturating_add(count) > record.observed_concurrency_limit {
                node.count_observed(true);
            }
        }
        if record.needs.any(Needs::OBSERVED_QPS) {
            // A rule in force has counted the pass already.
            let counted = record.needs.any(Needs::QPS);
            let asked = if counted { 0 } else { count };
            if !node
                .peek(ask.now_ns, asked, record.observed_qps_limit)
                .admitted()
            {
                node.count_observed(false);
            }
            if !counted {
                let _always: Admission = node.admit(ask.clock, ask.now_ns, count, u32::MAX);
            }
        }
    }
}

/// Counts the pass in the node's window, if its QPS limit allows it.
#[inline]
fn pass<C: Clock>(ask: &Ask<'_, C>, record: &Record, node: Node) -> Result<(), Refusal> {
    match node.admit(ask.clock, ask.now_ns, ask.request.count, record.qps_limit) {
        Admission::Admitted => Ok(()),
        Admission::Full {
            passed,
            retry_after_ns,
        } => {
            let (rule, limit) = (record.qps_rule, record.qps_limit);
            let refusal = Refusal::flow(Reason::Qps, rule, passed, limit, retry_after_ns);
            Err(refusal.spread(ask.now_ns))
        }
    }
}
