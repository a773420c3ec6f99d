//! System rules: plain marks on all inbound work of the host.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, LossMode, Outcome, Reason, RefusalKind};
use tidegate_limits::number::{whole, whole_ms};
use tidegate_limits::system::{SystemReadings, SystemThreshold};

use super::walk::Walk;
use super::{Ask, Gate, Pass, Refusal};
use crate::board::{AgentLife, Slot, SystemRules, View};
use crate::clock::Clock;
use crate::ledger::{Node, WindowAdmission};

/// When to come again after a system rule refused, ns: about a window.
const WAIT_NS: u64 = 1_000_000_000;

impl Gate {
    /// Holds an inbound request against the system rules.
    pub(super) fn check_system<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
    ) -> Result<(), Refusal> {
        let (Some(system), Some(node)) = (view.system(), self.inbound()) else {
            return Ok(());
        };
        let measured = self.measure(&system, node, ask.now_ns);
        let count = ask.request.count;
        if let Some(observed) = view.observed_system(&system)
            && let Some(mark) = observed.marks.refuses(&measured, count)
        {
            let refusal = refusal(&observed, mark, &measured);
            node.count_observed(false, (refusal.value, refusal.limit), ask.now_ns);
        }
        match system.marks.refuses(&measured, count) {
            None => Ok(()),
            Some(mark) => {
                let refusal = refusal(&system, mark, &measured).spread(ask.now_ns);
                node.count_refused(1, (refusal.value, refusal.limit), ask.now_ns);
                Err(refusal)
            }
        }
    }

    fn measure(&self, system: &SystemRules, node: Node, now_ns: u64) -> SystemReadings {
        let now_ns = at(system.quirks.wanted(), now_ns);
        // What an agent that is gone has measured must not refuse for ever.
        let (load, cpu) = match self.board.agent_life(now_ns) {
            AgentLife::Lost(LossMode::Open) => (None, None),
            AgentLife::Present
            | AgentLife::Grace
            | AgentLife::Lost(LossMode::Last | LossMode::Closed) => self.board.samples(),
        };
        SystemReadings {
            passed: node.window(now_ns).sum(),
            inflight: self.ledger.scope_inflight(&self.board, 0),
            average_rt_ms: node.average_rt_ms(now_ns),
            least_rt_ms: node.least_rt_ms(now_ns),
            max_success_qps: tidegate_limits::statistics::max_success_qps(node.successes(now_ns)),
            load,
            cpu,
        }
    }

    /// Counts an admitted inbound request on the inbound node. The QPS mark was looked at before; it
    /// is counted here whatever stands there now, as the other marks are.
    pub(super) fn count_inbound<C: Clock>(&self, ask: &Ask<'_, C>, view: &View, walk: &Walk<'_>) {
        if !has_system(view, walk.slot(), ask.request.direction) {
            return;
        }
        if let Some(node) = self.inbound() {
            let _always: WindowAdmission =
                node.admit(ask.clock, ask.now_ns, ask.request.count, u32::MAX);
        }
    }

    /// Counts an inbound request that ended on the inbound node.
    pub(super) fn count_ended(&self, view: &View, pass: &Pass, outcome: Outcome, now_ns: u64) {
        if matches!(outcome, Outcome::Ignore) || !has_system(view, pass.slot, pass.direction) {
            return;
        }
        if let Some(node) = self.inbound() {
            let record = view.record(pass.slot.index);
            let quirks = record.is_some_and(|record| record.needs.any(Needs::QUIRKS));
            let now_ns = at(quirks, now_ns);
            let rt_ns = now_ns.saturating_sub(at(quirks, pass.entered_ns));
            node.count_success(now_ns, pass.count, rt_ns);
        }
    }

    fn inbound(&self) -> Option<Node> {
        self.ledger.node(Slot::INBOUND.index)
    }
}

/// Whether system rules look at a request.
fn has_system(view: &View, slot: Slot, direction: Direction) -> bool {
    let record = view.record(slot.index);
    matches!(direction, Direction::In)
        && record.is_some_and(|record| record.needs.any(Needs::SYSTEM))
}

/// Sentinel's clock has whole milliseconds.
fn at(quirks: bool, now_ns: u64) -> u64 {
    if quirks { whole_ms(now_ns) } else { now_ns }
}

#[cold]
fn refusal(system: &SystemRules, mark: SystemThreshold, measured: &SystemReadings) -> Refusal {
    let marks = &system.marks;
    let shown = |value: f64| u32::try_from(whole(value)).unwrap_or(u32::MAX);
    let limit = |mark: Option<f64>| mark.map_or(0, shown);
    let (reason, value, limit) = match mark {
        SystemThreshold::Qps => (Reason::Qps, measured.passed, limit(marks.qps)),
        SystemThreshold::Concurrency => (
            Reason::Concurrency,
            measured.inflight,
            limit(marks.concurrency),
        ),
        SystemThreshold::AverageRt => (
            Reason::AvgRt,
            shown(measured.average_rt_ms),
            limit(marks.average_rt_ms),
        ),
        SystemThreshold::Load => (
            Reason::Load,
            shown(measured.load.unwrap_or(0.0)),
            limit(marks.load),
        ),
        SystemThreshold::Cpu => {
            let percent = |share: Option<f64>| shown(share.unwrap_or(0.0) * 100.0);
            (Reason::Cpu, percent(measured.cpu), percent(marks.cpu))
        }
    };
    Refusal {
        kind: RefusalKind::System,
        rule: system.rule,
        retry_after_ns: WAIT_NS,
        ..Refusal::scope(reason, value, limit)
    }
}
