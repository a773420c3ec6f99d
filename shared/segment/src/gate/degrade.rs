//! Circuit breakers: asked on the way in, told on the way out.

use core::num::NonZeroU64;

use tidegate_abi::decision::{Outcome, Reason, RefusalKind};
use tidegate_limits::breaker::tally::BreakerTally;
use tidegate_limits::breaker::{Breaker, BreakerAnswer, BreakerChange, BreakerState, Completion};
use tidegate_limits::number::whole_ms;

use super::request::{Pass, PassHoldings, PassedBreaker, remember};
use super::walk::{Answer, TimedRule, Walk};
use super::{Gate, Refusal};
use crate::board::{BoardRule, RuleKind, Slot, View};
use crate::ledger::RuleState;
use crate::sync::Ordering;

/// When to come again after a breaker without a lease on its probe refused, ns.
const PROBE_WAIT_NS: u64 = 1_000_000_000;

impl Gate {
    pub(super) fn look_at_breaker(
        &self,
        asked: &TimedRule<'_>,
        breaker: &Breaker,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let Some(state) = self.ledger.state(asked.rule.state) else {
            return Answer::Go;
        };
        let refuse = |retry_after_ns| {
            let shown = breaker.trip.shown(state.opened_by());
            Answer::Refuse(Refusal::breaker(asked.rule.number, shown, retry_after_ns))
        };
        let admission = state.word().step(|word| {
            let (admission, next) = breaker.enter(word, asked.now_ns);
            // A probe that ran out of its lease is found here.
            ((admission, Breaker::opened(word, next)), next)
        });
        if matches!(admission, Some((_, true))) {
            state.count_change(BreakerState::Open);
        }
        let (generation, probe) = match admission {
            Some((BreakerAnswer::Pass { generation }, _)) => (generation, false),
            Some((BreakerAnswer::Probe { generation }, _)) => (generation, true),
            Some((BreakerAnswer::Refuse { retry_after_ns }, _)) => return refuse(retry_after_ns),
            None => return refuse(PROBE_WAIT_NS),
        };
        if probe {
            state.count_change(BreakerState::HalfOpen);
        }
        let passed = PassedBreaker {
            state: asked.rule.state,
            generation,
            probe,
        };
        if !remember(&mut walk.held.breakers, passed) && probe {
            // No place to remember the probe: it must not be left half-open. The configuration
            // keeps a resource below that number of breakers.
            put_back(state, breaker, passed, asked.now_ns);
        }
        Answer::Go
    }

    /// Puts the breakers back for which this request was the probe.
    pub(super) fn put_probes_back(
        &self,
        view: &View,
        slot: Slot,
        held: &PassHoldings,
        now_ns: u64,
    ) {
        if !held.breakers.iter().flatten().any(|passed| passed.probe) {
            return;
        }
        self.each_breaker(view, slot, |rule, breaker, _interval_ns, state| {
            let passed = passed_of(held, rule.state);
            if let Some(passed) = passed.filter(|passed| passed.probe) {
                let now_ns = if rule.quirks.wanted() {
                    whole_ms(now_ns)
                } else {
                    now_ns
                };
                put_back(state, breaker, passed, now_ns);
            }
        });
    }

    /// Tells every breaker of the resource of a completion.
    pub(super) fn complete_breakers(
        &self,
        view: &View,
        pass: &Pass,
        outcome: Outcome,
        now_ns: u64,
    ) {
        let held = pass.held();
        self.each_breaker(view, pass.slot, |rule, breaker, interval_ns, state| {
            let passed = passed_of(&held, rule.state);
            let at = |ns: u64| {
                if rule.quirks.wanted() {
                    whole_ms(ns)
                } else {
                    ns
                }
            };
            let now_ns = at(now_ns);
            if matches!(outcome, Outcome::Ignore) {
                // Nothing is known of it. A probe that ends so leaves its place to the next.
                if let Some(passed) = passed.filter(|passed| passed.probe) {
                    put_back(state, breaker, passed, now_ns);
                }
                return;
            }
            let rt_ns = now_ns.saturating_sub(at(pass.entered_ns));
            let call = Completion {
                is_bad: breaker
                    .trip
                    .is_bad(rt_ns, matches!(outcome, Outcome::Error)),
                generation: passed.map(|passed| passed.generation),
            };
            complete(state, breaker, interval_ns, call, now_ns);
        });
    }

    /// Tells the breaker of a short record, which may change its state, of a completion that is in its
    /// tally.
    #[cold]
    #[inline(never)]
    pub(super) fn judge_short(
        &self,
        slot: Slot,
        line: u32,
        ended: (Completion, BreakerTally),
        now_ns: u64,
    ) {
        let view = self.board.view();
        self.each_breaker(&view, slot, |rule, breaker, interval_ns, state| {
            if rule.state == line {
                judge(state, breaker, interval_ns, ended, now_ns);
            }
        });
    }

    fn each_breaker(
        &self,
        view: &View,
        slot: Slot,
        mut tell: impl FnMut(&BoardRule, &Breaker, NonZeroU64, RuleState),
    ) {
        let Some(record) = view.record(slot.index) else {
            return;
        };
        for place in 0..record.rules {
            let rule = view.rule(record.rules_first.saturating_add(place));
            let Some(rule) = rule.filter(|rule| rule.refusal_kind() == RefusalKind::Degrade) else {
                continue;
            };
            if let RuleKind::Degrade {
                breaker,
                interval_ns,
            } = rule.kind
                && let Some(state) = self.ledger.state(rule.state)
            {
                tell(&rule, &breaker, interval_ns, state);
            }
        }
    }
}

fn passed_of(held: &PassHoldings, state: u32) -> Option<PassedBreaker> {
    held.breakers
        .iter()
        .flatten()
        .find(|passed| passed.state == state)
        .copied()
}

fn put_back(state: RuleState, breaker: &Breaker, passed: PassedBreaker, now_ns: u64) {
    let changed = state.word().step(|word| {
        let next = breaker.put_back(word, passed.generation, now_ns);
        (next != word, next)
    });
    if changed == Some(true) {
        state.count_change(BreakerState::Open);
    }
}

/// Adds a completion to the tally, then lets it decide.
fn complete(
    state: RuleState,
    breaker: &Breaker,
    interval_ns: NonZeroU64,
    call: Completion,
    now_ns: u64,
) {
    let tally = state.second().step(|word| {
        let tally = BreakerTally::at(word, now_ns, interval_ns);
        let tally = breaker.trip.count(tally, call.is_bad);
        (tally, tally.word())
    });
    if let Some(tally) = tally {
        judge(state, breaker, interval_ns, (call, tally), now_ns);
    }
}

/// Lets a completion that is in the tally decide.
fn judge(
    state: RuleState,
    breaker: &Breaker,
    interval_ns: NonZeroU64,
    (call, tally): (Completion, BreakerTally),
    now_ns: u64,
) {
    let seen = state.word().load(Ordering::Relaxed);
    if matches!(
        breaker.complete(seen, tally, call, now_ns).0,
        BreakerChange::Closed
    ) {
        // Before it closes: the completions of its trip must not be there for those of the first calls
        // after it to be judged with.
        let _turn: Option<()> = state.second().step(|word| {
            (
                (),
                BreakerTally::at(word, now_ns, interval_ns).cleared().word(),
            )
        });
    }
    let change = state.word().step(|word| {
        let (change, next) = breaker.complete(word, tally, call, now_ns);
        ((change, Breaker::opened(word, next)), next)
    });
    if let Some((change, opened)) = change {
        note_change(state, change, opened);
    }
}

/// Notes what a completion changed; a lease that ran out may have opened the breaker besides.
#[inline]
fn note_change(state: RuleState, change: BreakerChange, opened: bool) {
    if opened {
        state.count_change(BreakerState::Open);
    }
    match change {
        BreakerChange::None => {}
        BreakerChange::Opened { value } => state.set_opened_by(value),
        BreakerChange::Closed => state.count_change(BreakerState::Closed),
    }
}

impl Refusal {
    /// A breaker refused, because of what opened it last.
    #[cold]
    pub(super) fn breaker(rule: u32, (value, limit): (u32, u32), retry_after_ns: u64) -> Self {
        let wait_ns = if retry_after_ns == u64::MAX {
            PROBE_WAIT_NS
        } else {
            retry_after_ns
        };
        Self {
            kind: RefusalKind::Degrade,
            ..Self::flow(Reason::BreakerOpen, rule, value, limit, wait_ns)
        }
    }
}
