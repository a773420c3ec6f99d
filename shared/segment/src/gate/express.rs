//! The express way: a resource with at most one plain QPS limit, in a calm scope, on a lane that has
//! worked on it before. Most decisions are that, so they get a way without anything else on it.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Reason, RefusalKind};

use super::{Gate, Pass, Refusal, Request, Verdict};
use crate::board::Slot;
use crate::clock::Clock;
use crate::lane::Lane;
use crate::ledger::{Admission, Cell, Totals};

impl Gate {
    /// Decides where that takes no more than the express way; `None` = nothing was counted, decide
    /// the long way.
    #[inline(always)]
    pub(super) fn express<C: Clock>(
        &self,
        clock: &C,
        lane: Lane,
        slot: Slot,
        request: &Request<'_>,
    ) -> Option<Verdict> {
        let now_ns = clock.now_ns();
        let head = self.board.head(slot.index)?;
        let plain = head.needs.0 & !Needs::QPS == 0 && head.generation == slot.generation;
        if !plain || request.prioritized || !self.seated() {
            return None;
        }
        let row = self.rows.row(lane)?;
        let (cell, totals) = (row.cell(slot)?, row.totals());
        let inbound = matches!(request.direction, Direction::In);
        if !cell.used() || (inbound && !self.scopes_are_calm(now_ns, totals)) {
            return None;
        }
        if head.needs.any(Needs::QPS) {
            let node = self.ledger.node(slot.index)?;
            let limit = node.room(now_ns, head.qps_limit);
            let admission = node.admit(clock, now_ns, request.count, limit);
            if let Admission::Full {
                passed,
                retry_after_ns,
            } = admission
            {
                count_refusal(cell, inbound.then_some(totals), request.count);
                let limit = head.qps_limit;
                let rule = self.qps_rule(slot);
                let refusal = Refusal::flow(Reason::Qps, rule, passed, limit, retry_after_ns);
                return Some(Verdict::Refused(refusal.spread(now_ns)));
            }
        }
        cell.take();
        cell.passed(request.count);
        if inbound {
            totals.passed();
        }
        Some(Verdict::Admitted(Pass {
            count: request.count,
            ..Pass::plain(slot, now_ns, request.direction)
        }))
    }

    /// Number of the QPS rule of a resource, for the message.
    #[inline(always)]
    fn qps_rule(&self, slot: Slot) -> u32 {
        let rule = self.board.view().qps_rule(slot.index);
        rule.unwrap_or(Refusal::NO_RULE)
    }
}

#[inline(always)]
fn count_refusal(cell: Cell, totals: Option<Totals>, count: u32) {
    cell.refused(RefusalKind::Flow, count);
    if let Some(totals) = totals {
        totals.refused(false);
    }
}
