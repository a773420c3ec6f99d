//! The walk through a resource's rules: look at each in order, then commit what they count.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Mode, Outcome, Reason, RefusalKind};
use tidegate_limits::number::whole_ms;

use super::param::Run;
use super::request::{PassExtras, PassHoldings, VALUES};
use super::{Ask, Gate, GateVerdict, Pass, Refusal, Request, Step};
use crate::board::{BoardRule, ResourceRecord, RuleKind, Slot, View};
use crate::clock::Clock;
use crate::lane::Lane;

mod commit;
mod go_over;
mod let_go;
mod use_buckets;

/// A decision that waits.
#[derive(Debug, Clone, Copy)]
pub struct WaitingDecision<'a> {
    until_ns: u64,
    walk: Walk<'a>,
}

impl<'a> WaitingDecision<'a> {
    /// When to go on, monotonic ns.
    pub const fn until_ns(&self) -> u64 {
        self.until_ns
    }
    pub(super) const fn new(until_ns: u64, walk: &Walk<'a>) -> Self {
        Self {
            until_ns,
            walk: *walk,
        }
    }
    pub(super) const fn walk(&self) -> Walk<'a> {
        self.walk
    }
}

/// Nodes that one request counts on: the resource, and that with its origin, and that in its context.
pub(super) const NODES: usize = 3;

/// What the rules hold one node to.
#[derive(Debug, Clone, Copy)]
struct Limits {
    passes: u32,
    passes_rule: u32,
    inflight: u32,
    inflight_rule: u32,
}

impl Limits {
    const NONE: Self = Self {
        passes: u32::MAX,
        passes_rule: Refusal::NO_RULE,
        inflight: u32::MAX,
        inflight_rule: Refusal::NO_RULE,
    };
}

/// Where a walk is, and what it has on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    slot: Slot,
    request: Request<'a>,
    entered_ns: u64,
    generation: u64,
    next: u32,
    /// Kind of the rule that was asked last, its place and its line of state.
    kind: RefusalKind,
    asked: (u32, u32),
    /// Next element of a list argument of the present rule.
    pub(super) element: usize,
    scopes_passed: bool,
    waited_ns: u64,
    /// The node whose pass was borrowed from its next bucket.
    borrowed: Option<Slot>,
    limits: [Limits; NODES],
    /// Values whose calls begin when the walk commits.
    pub(super) runs: [Option<Run>; VALUES],
    /// Sentinel looks before a wait and counts after it, whatever has passed meanwhile.
    pub(super) looked_before: bool,
    pub(super) held: PassHoldings,
}

/// What a rule answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// On to the next rule.
    Go,
    /// On to the next rule after a wait, ns.
    Wait(u64),
    /// On with the same rule after a wait, ns.
    WaitHere(u64),
    /// The pass was borrowed on that node; on after a wait, ns.
    Borrowed(Slot, u64),
    /// No.
    Refuse(Refusal),
}

impl<'a> Walk<'a> {
    pub(super) fn begin(slot: Slot, request: Request<'a>, now_ns: u64, generation: u64) -> Self {
        Self {
            slot,
            request,
            entered_ns: now_ns,
            generation,
            next: 0,
            kind: RefusalKind::Authority,
            asked: (0, u32::MAX),
            element: 0,
            scopes_passed: false,
            waited_ns: 0,
            borrowed: None,
            limits: [Limits::NONE; NODES],
            runs: [None; VALUES],
            looked_before: false,
            held: PassHoldings {
                origin: request.origin.node,
                context: request.context.node,
                ..PassHoldings::NOTHING
            },
        }
    }

    /// A request on a plain resource that has borrowed its pass there and waits for it.
    pub(super) fn borrowed(begun: &Self, record: &ResourceRecord, wait_ns: u64) -> Self {
        let mut walk = Self {
            borrowed: Some(begun.slot),
            kind: RefusalKind::Flow,
            scopes_passed: true,
            waited_ns: wait_ns,
            ..*begun
        };
        if record.needs.any(Needs::CONCURRENCY) {
            let (limit, rule) = (record.concurrency_limit, record.concurrency_rule);
            walk.limit_inflight(begun.slot, limit, rule);
        }
        walk
    }

    pub(super) const fn slot(&self) -> Slot {
        self.slot
    }
    pub(super) const fn request(&self) -> Request<'a> {
        self.request
    }

    /// The nodes, in the order of the limits.
    pub(super) const fn nodes(&self) -> [Option<Slot>; NODES] {
        [Some(self.slot), self.held.origin, self.held.context]
    }

    /// Holds a node to a number of passes in its window when the walk commits.
    pub(super) fn limit_passes(&mut self, node: Slot, limit: u32, rule: u32) {
        if let Some(limits) = self.limits_of(node)
            && limit < limits.passes
        {
            limits.passes = limit;
            limits.passes_rule = rule;
        }
    }

    /// Holds a node to a number of requests in flight when the walk commits.
    pub(super) fn limit_inflight(&mut self, node: Slot, limit: u32, rule: u32) {
        if let Some(limits) = self.limits_of(node)
            && limit < limits.inflight
        {
            limits.inflight = limit;
            limits.inflight_rule = rule;
        }
    }

    const fn without_limits(&self) -> Self {
        Self {
            limits: [Limits::NONE; NODES],
            looked_before: true,
            ..*self
        }
    }

    /// A borrowed pass is counted on its node already. In Sentinel it also skips the flow rules and
    /// breakers that follow.
    fn borrow(&mut self, node: Slot, rule: &BoardRule, rules: u32) {
        self.borrowed = Some(node);
        if rule.quirks.wanted() {
            self.next = rules;
            self.kind = RefusalKind::Degrade;
        }
    }

    fn limits_of(&mut self, node: Slot) -> Option<&mut Limits> {
        let nodes = self.nodes();
        let place = nodes.iter().position(|held| *held == Some(node))?;
        self.limits.get_mut(place)
    }
}

impl Gate {
    /// Goes on with a walk.
    pub(super) fn walk<'a, C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        walk: &Walk<'a>,
    ) -> Step<'a> {
        let mut walk = *walk;
        let Some(record) = view.record(ask.slot.index) else {
            return Step::Done(self.contended(ask));
        };
        match self.look(ask, view, &record, &mut walk) {
            Answer::Go => Step::Done(self.finish(ask, view, &walk)),
            Answer::Refuse(refusal) => Step::Done(self.refuse_walk(ask, view, &walk, refusal)),
            Answer::Wait(wait_ns) | Answer::WaitHere(wait_ns) | Answer::Borrowed(_, wait_ns) => {
                walk.waited_ns = walk.waited_ns.saturating_add(wait_ns);
                self.ledger.count_wait(ask.slot);
                let until_ns = ask.now_ns.saturating_add(wait_ns);
                Step::Wait(WaitingDecision { until_ns, walk })
            }
        }
    }

    /// Looks at the rules from where the walk is. What the walk counts is held to what the rules said
    /// when they were asked, also where the set has changed meanwhile.
    fn look<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        record: &ResourceRecord,
        walk: &mut Walk<'_>,
    ) -> Answer {
        walk.go_over(view, record);
        while walk.next < record.rules {
            let Some(rule) = view.rule(record.rules_first.saturating_add(walk.next)) else {
                break;
            };
            if !matches!(rule.kind, RuleKind::Authority { .. })
                && let Err(refusal) = self.pass_scopes(ask, view, record, walk)
            {
                return Answer::Refuse(refusal);
            }
            (walk.kind, walk.asked) = (rule.refusal_kind(), (walk.next, rule.state));
            let answer = self.look_at(ask, view, &rule, walk);
            if !matches!(answer, Answer::WaitHere(_)) {
                walk.next = walk.next.saturating_add(1);
                walk.element = 0;
            }
            if let Answer::Borrowed(node, _) = answer {
                walk.borrow(node, &rule, record.rules);
            }
            if !matches!(answer, Answer::Go) {
                return answer;
            }
        }
        // Two sets were published since the walk looked at this one: rules of it may be gone. A decision must
        // end; it goes by what was asked, and that is counted.
        if !view.is_whole() {
            self.ledger.count_contended(self.seat);
        }
        match self.pass_scopes(ask, view, record, walk) {
            Ok(()) => Answer::Go,
            Err(refusal) => Answer::Refuse(refusal),
        }
    }

    /// A rule in observe mode is asked, and neither refuses nor holds the request up.
    fn look_at<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        rule: &BoardRule,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let now_ns = if rule.quirks.wanted() {
            whole_ms(ask.now_ns)
        } else {
            ask.now_ns
        };
        let asked = TimedRule {
            rule,
            view: *view,
            now_ns,
            raw_ns: ask.now_ns,
        };
        let answer = match rule.kind {
            RuleKind::Authority { list, origins } => {
                let origin = ask.request.origin.hash;
                let on_list = view.contains(origins, origin);
                if list.admits(origin == 0, on_list) {
                    Answer::Go
                } else {
                    Answer::Refuse(Refusal::origin(rule.number))
                }
            }
            RuleKind::Param(param) => self.look_at_param(&asked, &param, walk),
            RuleKind::Flow(flow) => self.look_at_flow(ask.clock, &asked, &flow, walk),
            RuleKind::Degrade { breaker, .. } => self.look_at_breaker(&asked, &breaker, walk),
        };
        match (rule.mode, answer) {
            (Mode::Observe, Answer::Refuse(refusal)) => {
                self.count_refused(rule, &refusal, ask.now_ns);
                Answer::Go
            }
            (Mode::Observe, _) => Answer::Go,
            (_, Answer::Refuse(refusal)) => {
                self.count_refused(rule, &refusal, ask.now_ns);
                Answer::Refuse(refusal.spread(ask.now_ns))
            }
            (_, answer) => answer,
        }
    }

    fn count_refused(&self, rule: &BoardRule, refusal: &Refusal, now_ns: u64) {
        if let Some(state) = self.ledger.state(rule.state) {
            let observed = matches!(rule.mode, Mode::Observe);
            state.count_refused(observed, (refusal.value, refusal.limit), now_ns);
        }
    }

    /// Counts a refusal at the rule of the resource that it names.
    fn count_refused_late(&self, view: &View, slot: Slot, refusal: &Refusal, now_ns: u64) {
        let Some(record) = view.record(slot.index) else {
            return;
        };
        let places = 0..record.rules;
        let mut rules =
            places.filter_map(|place| view.rule(record.rules_first.saturating_add(place)));
        if let Some(rule) = rules.find(|rule| rule.number == refusal.rule) {
            self.count_refused(&rule, refusal, now_ns);
        }
    }

    /// The system step, once: scopes, then the system rules.
    fn pass_scopes<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        record: &ResourceRecord,
        walk: &mut Walk<'_>,
    ) -> Result<(), Refusal> {
        if walk.scopes_passed || !matches!(ask.request.direction, Direction::In) {
            return Ok(());
        }
        walk.scopes_passed = true;
        self.check_scopes(ask)?;
        if record.needs.any(Needs::SYSTEM) {
            self.check_system(ask, view)?;
        }
        Ok(())
    }

    fn refuse_walk<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        walk: &Walk<'_>,
        refusal: Refusal,
    ) -> GateVerdict {
        self.put_back(view, walk, ask.now_ns);
        self.use_buckets(view, walk.nodes(), ask.now_ns);
        for slot in walk.nodes().into_iter().flatten().skip(1) {
            if let Some(books) = self.books(ask.lane, slot) {
                books.mark();
                books.cell.refused(refusal.kind, ask.request.count);
            }
        }
        GateVerdict::Refused(ask.refuse(refusal))
    }

    /// Refuses a request that does not wait until its turn.
    pub(super) fn give_up<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        walk: &Walk<'_>,
        until_ns: u64,
    ) -> GateVerdict {
        let wait_ns = until_ns.saturating_sub(ask.now_ns);
        let refusal = Refusal::flow(Reason::Queue, Refusal::NO_RULE, 0, 0, wait_ns);
        self.refuse_walk(ask, &self.board.view(), walk, refusal)
    }

    /// Gives back what a request that is refused after all held on its way: probes and values.
    fn put_back(&self, view: &View, walk: &Walk<'_>, now_ns: u64) {
        self.put_probes_back(view, walk.slot, &walk.held, now_ns);
        self.end_values(&walk.held);
    }

    /// Ends what a request held besides its cell.
    pub(super) fn exit_walked(&self, lane: Lane, pass: &Pass, outcome: Outcome, now_ns: u64) {
        let view = self.board.view();
        let rt_ns = now_ns.saturating_sub(pass.entered_ns);
        let held = pass.held();
        let parts = [held.origin, held.context].into_iter().flatten();
        for slot in parts.filter(|slot| self.board.is_held(*slot)) {
            if let Some(books) = self.books(lane, slot) {
                books.mark();
                books.cell.ended(outcome, pass.count, rt_ns);
                self.ledger.count_time(slot, (outcome, rt_ns), pass.count);
            }
        }
        // With quirks every request walks.
        if matches!(pass.kept, PassExtras::Walked(_)) {
            self.use_buckets(&view, [Some(pass.slot), held.origin, held.context], now_ns);
        }
        self.count_ended(&view, pass, outcome, now_ns);
        self.complete_breakers(&view, pass, outcome, now_ns);
        self.end_values(&held);
    }
}

/// A rule, and the time by which it is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedRule<'r> {
    pub(super) rule: &'r BoardRule,
    /// The set it is of.
    pub(super) view: View,
    /// Time, ns; in whole ms for a rule with quirks.
    pub(super) now_ns: u64,
    /// Time, ns.
    pub(super) raw_ns: u64,
}

impl TimedRule<'_> {
    /// Whether the rule only observes: it then reserves nothing.
    pub(super) const fn observes(&self) -> bool {
        matches!(self.rule.mode, Mode::Observe)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod two_sets_tests;
