//! Flow rules of the table: which node they look at, and what they say.

use tidegate_abi::decision::Reason;
use tidegate_limits::pacing::{AtRate, Pacing};
use tidegate_limits::strict::RuleLimit;
use tidegate_limits::verdict::Verdict;
use tidegate_limits::warm_up::WarmUp;
use tidegate_limits::window::{BucketLength, Window};

use super::walk::{Answer, TimedRule, Walk};
use super::{Gate, Refusal};
use crate::board::{FlowLimit, FlowRule, OriginTest, Slot, Subject, View, WarmUpNumbers};
use crate::clock::Clock;
use crate::ledger::{Node, RuleState, WindowAdmission};
use crate::sync::{Ordering, Word};

const NS_PER_MS: u64 = 1_000_000;

/// How long a caller is told to stay away where waiting alone does not help, ns.
const LONG_WAIT_NS: u64 = 1_000_000_000;

impl Gate {
    /// Asks a flow rule. A limit on the node's own window or places is only looked at here; the walk
    /// commits it. Pacing takes its turn at once and keeps it.
    pub(super) fn look_at_flow(
        &self,
        clock: &dyn Clock,
        asked: &TimedRule<'_>,
        flow: &FlowRule,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let Some((slot, own)) = subject(&asked.view, flow, walk) else {
            return Answer::Go;
        };
        let (Some(node), Some(state)) = (
            self.ledger.node(slot.index),
            self.ledger.state(asked.rule.state),
        ) else {
            return Answer::Go;
        };
        // A resource that nobody ever asked for holds nobody back, and its rule takes no turns.
        let others = !own && slot != walk.slot();
        if others && !self.ledger.is_used(&self.board, slot) {
            return Answer::Go;
        }
        let looks_at_passes = matches!(flow.limit, FlowLimit::Qps(_) | FlowLimit::WarmUp(_));
        if asked.rule.quirks.wanted() && looks_at_passes {
            node.use_bucket(asked.now_ns);
        }
        let target = Target {
            clock,
            node,
            state,
            slot,
            own,
        };
        self.hold_to(asked, &flow.limit, &target, walk)
    }

    fn hold_to(
        &self,
        asked: &TimedRule<'_>,
        limit: &FlowLimit,
        target: &Target<'_>,
        walk: &mut Walk<'_>,
    ) -> Answer {
        match *limit {
            FlowLimit::Concurrency(limit) => self.look_at_places(asked, target, limit, walk),
            FlowLimit::Qps(limit) => look_at_window(asked, target, limit, walk),
            FlowLimit::Window { limit, window_ns } => {
                count_in_window(asked, target, (limit, window_ns), walk)
            }
            FlowLimit::Strict { limit, window_ns } => {
                count_strictly(asked, target, (limit, window_ns), walk)
            }
            FlowLimit::Pace { count, max_wait_ns } => {
                let pacing = Pacing::new(count, max_wait_ns);
                let count = walk.request().count;
                take_turn(asked, target.state.word(), max_wait_ns, |word| {
                    pacing.step(word, asked.raw_ns, count)
                })
            }
            FlowLimit::WarmUp(numbers) => look_at_warm_up(asked, target, numbers, walk),
            FlowLimit::WarmUpPace {
                warm_up,
                max_wait_ns,
            } => pace_warming(asked, target, warm_up, max_wait_ns, walk.request().count),
        }
    }

    fn look_at_places(
        &self,
        asked: &TimedRule<'_>,
        target: &Target<'_>,
        limit: u32,
        walk: &mut Walk<'_>,
    ) -> Answer {
        let inflight = self.ledger.node_inflight(&self.board, target.slot);
        let number = asked.rule.number;
        if inflight.saturating_add(walk.request().count) > limit {
            return Answer::Refuse(Refusal::concurrency(number, inflight, limit));
        }
        if target.own && !asked.observes() {
            walk.limit_inflight(target.slot, limit, number);
        }
        Answer::Go
    }
}

/// What a rule looks at.
struct Target<'c> {
    clock: &'c dyn Clock,
    node: Node,
    state: RuleState,
    slot: Slot,
    /// Whether the request itself counts on that node.
    own: bool,
}

/// The node a flow rule looks at for this request, and whether the request counts there; `None` if
/// the rule is not for it.
fn subject(view: &View, flow: &FlowRule, walk: &Walk<'_>) -> Option<(Slot, bool)> {
    let request = walk.request();
    let caller = request.origin.hash;
    let (concerned, of_origin) = match flow.origin {
        OriginTest::Any => (true, false),
        OriginTest::Is(hash) => (caller == hash, true),
        OriginTest::Other(named) => (caller != 0 && !view.contains(named, caller), true),
    };
    if !concerned {
        return None;
    }
    match flow.subject {
        Subject::Direct if of_origin => Some((request.origin.node.unwrap_or(walk.slot()), true)),
        Subject::Direct => Some((walk.slot(), true)),
        Subject::Relate(index) => {
            let generation = view.record(index)?.generation;
            Some((Slot { index, generation }, false))
        }
        Subject::Chain(context) if context == request.context.hash => {
            Some((request.context.node.unwrap_or(walk.slot()), true))
        }
        Subject::Chain(_) => None,
    }
}

/// A limit on the node's own window. A prioritized request may borrow from the next bucket.
fn look_at_window(
    asked: &TimedRule<'_>,
    target: &Target<'_>,
    limit: u32,
    walk: &mut Walk<'_>,
) -> Answer {
    let (number, now_ns, request) = (asked.rule.number, asked.now_ns, walk.request());
    let room = target.node.room(now_ns, limit);
    match target.node.peek(now_ns, request.count, room) {
        WindowAdmission::Admitted(_) => {
            if target.own && !asked.observes() {
                walk.limit_passes(target.slot, limit, number);
            }
            Answer::Go
        }
        WindowAdmission::Full {
            passed,
            retry_after_ns,
        } => {
            // Sentinel borrows of another resource too.
            let lends = target.own || asked.rule.quirks.wanted();
            let may_borrow = request.prioritized && lends && !asked.observes();
            let borrow = || {
                let (loan, quirks) = ((request.count, limit), asked.rule.quirks);
                target.node.borrow(target.clock, now_ns, loan, quirks)
            };
            if may_borrow && let Some(wait_ns) = borrow() {
                let then_ns = if asked.rule.quirks.wanted() {
                    now_ns
                } else {
                    asked.raw_ns
                };
                target.node.count_second(then_ns, request.count);
                return Answer::Borrowed(target.slot, wait_ns);
            }
            Answer::Refuse(Refusal::qps(number, passed, limit, retry_after_ns))
        }
    }
}

/// A limit on a window of the rule's own, of another length than a second. It counts at once: nobody
/// else looks at it.
fn count_in_window(
    asked: &TimedRule<'_>,
    target: &Target<'_>,
    (limit, window_ns): (u32, u64),
    walk: &Walk<'_>,
) -> Answer {
    let Some(bucket) = BucketLength::of_window(window_ns) else {
        return Answer::Go;
    };
    let (now_ns, count) = (asked.now_ns, walk.request().count);
    let observes = asked.observes();
    let counted = target.state.word().step(|word| {
        let window = Window::at(word, bucket.epoch(now_ns));
        if let Some(next) = window.try_add(count, limit) {
            return (None, next.word());
        }
        // A rule that only observes counts what others let through.
        let next = if observes {
            window.add(count).word()
        } else {
            word
        };
        (Some(window), next)
    });
    match counted {
        Some(None) => Answer::Go,
        None => crowded_out(asked, limit),
        Some(Some(window)) => {
            let room_ns = window.fits_after_ns(count, limit, now_ns, bucket);
            let room_ns = room_ns.unwrap_or(LONG_WAIT_NS);
            Answer::Refuse(Refusal::qps(
                asked.rule.number,
                window.sum(),
                limit,
                room_ns,
            ))
        }
    }
}

/// A limit that holds in every window. It counts at once, as above.
fn count_strictly(
    asked: &TimedRule<'_>,
    target: &Target<'_>,
    (limit, window_ns): (u32, u64),
    walk: &Walk<'_>,
) -> Answer {
    let Some(strict) = RuleLimit::new(limit, window_ns) else {
        return Answer::Go;
    };
    let (now_ns, count) = (asked.now_ns, walk.request().count);
    let counted = target
        .state
        .word()
        .step(|word| match strict.try_add(word, now_ns, count) {
            Some(next) => (None, next),
            None => (Some(strict.fits_after_ns(word, now_ns, count)), word),
        });
    match counted {
        Some(None) => Answer::Go,
        None => crowded_out(asked, limit),
        Some(Some(room_ns)) => {
            let room_ns = room_ns.unwrap_or(LONG_WAIT_NS);
            Answer::Refuse(Refusal::qps(asked.rule.number, limit, limit, room_ns))
        }
    }
}

/// Others were quicker at every try. Who is not counted must not pass.
#[cold]
fn crowded_out(asked: &TimedRule<'_>, limit: u32) -> Answer {
    Answer::Refuse(Refusal::qps(asked.rule.number, limit, limit, NS_PER_MS))
}

/// Takes a turn of a pacing rule; a rule that only observes looks and takes none.
/// The refusal says the wait that it would have taken, and the longest allowed, in ms.
fn take_turn(
    asked: &TimedRule<'_>,
    word: &Word,
    max_wait_ns: u64,
    step: impl Fn(u64) -> (Verdict, u64),
) -> Answer {
    let observes = asked.observes();
    let verdict = word.step(|seen| {
        let (verdict, next) = step(seen);
        (
            verdict,
            if observes && !verdict.admits() {
                seen
            } else {
                next
            },
        )
    });
    match verdict {
        Some(Verdict::Admit { wait_ns: 0 }) => Answer::Go,
        Some(Verdict::Admit { wait_ns }) => Answer::Wait(wait_ns),
        Some(Verdict::Refuse { retry_after_ns }) => {
            Answer::Refuse(queue(asked, max_wait_ns, retry_after_ns))
        }
        None => Answer::Refuse(queue(asked, max_wait_ns, None)),
    }
}

#[cold]
fn queue(asked: &TimedRule<'_>, max_wait_ns: u64, retry_after_ns: Option<u64>) -> Refusal {
    let ms = |ns: u64| u32::try_from(ns.div_ceil(NS_PER_MS)).unwrap_or(u32::MAX);
    let room_ns = retry_after_ns.unwrap_or(LONG_WAIT_NS);
    let wait_ms = ms(max_wait_ns.saturating_add(room_ns));
    let (rule, limit_ms) = (asked.rule.number, ms(max_wait_ns));
    Refusal::flow(Reason::Queue, rule, wait_ms, limit_ms, room_ns)
}

/// The warm-up bucket, filled for this second.
fn warming(asked: &TimedRule<'_>, target: &Target<'_>, numbers: WarmUpNumbers) -> (WarmUp, u64) {
    let WarmUpNumbers {
        count,
        period_s,
        cold_factor,
    } = numbers;
    let warm_up = WarmUp::new(count, period_s, cold_factor, asked.rule.quirks);
    let previous = target.node.previous_second(asked.now_ns);
    let filled = target.state.word().step(|word| {
        let next = warm_up.fill(word, asked.now_ns, previous);
        (next, next)
    });
    // Where others were quicker at every try, theirs is as good.
    let filled = filled.unwrap_or_else(|| target.state.word().load(Ordering::Relaxed));
    (warm_up, filled)
}

fn look_at_warm_up(
    asked: &TimedRule<'_>,
    target: &Target<'_>,
    numbers: WarmUpNumbers,
    walk: &mut Walk<'_>,
) -> Answer {
    let (warm_up, filled) = warming(asked, target, numbers);
    let (number, count) = (asked.rule.number, walk.request().count);
    let arrived = target.node.arrived(asked.now_ns);
    let passed = target
        .node
        .window(asked.now_ns)
        .sum()
        .saturating_add(arrived);
    let Some(limit) = warm_up.limit(filled, passed, count) else {
        return Answer::Refuse(Refusal::qps(number, passed, 0, LONG_WAIT_NS));
    };
    if passed.saturating_add(count) > limit {
        return Answer::Refuse(Refusal::qps(number, passed, limit, LONG_WAIT_NS / 2));
    }
    if target.own && !asked.observes() {
        walk.limit_passes(target.slot, limit, number);
    }
    Answer::Go
}

fn pace_warming(
    asked: &TimedRule<'_>,
    target: &Target<'_>,
    numbers: WarmUpNumbers,
    max_wait_ns: u64,
    count: u32,
) -> Answer {
    let (warm_up, filled) = warming(asked, target, numbers);
    let pacing = AtRate::new(max_wait_ns, asked.rule.quirks);
    let rate = warm_up.rate(filled);
    take_turn(asked, target.state.second(), max_wait_ns, |word| {
        pacing.step(word, asked.raw_ns, count, rate)
    })
}
