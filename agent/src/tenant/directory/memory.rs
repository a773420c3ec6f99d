//! What the rules of a resource remember of it, and for how long that matters.

use tidegate_abi::ledger::value;
use tidegate_limits::breaker::BreakerState;
use tidegate_limits::number::whole;
use tidegate_segment::board::{BoardRule as Line, FlowLimit, ParamLimit, ParamRule, RuleKind};
use tidegate_segment::ledger::Ledger;

use super::super::compile::room::ITEMS_OF_LINE;

const SECOND_NS: u64 = 1_000_000_000;

/// How long after its last change the state of a rule still says something that a new state would not, ns.
///
/// After that a resource that is made anew is held to the same. A breaker that is not closed is not in this: it
/// waits for its probe, however long ([`is_calm`]).
pub(super) fn remembered_ns(line: &Line) -> u64 {
    let seconds = |count: u32| u64::from(count).saturating_mul(SECOND_NS);
    match &line.kind {
        RuleKind::Authority { .. } => 0,
        RuleKind::Degrade { interval_ns, .. } => interval_ns.get(),
        RuleKind::Param(param) => seconds(remembered_s(param)),
        RuleKind::Flow(flow) => match flow.limit {
            // The node's window, and a loan of its next half second.
            FlowLimit::Concurrency(_) | FlowLimit::Qps(_) => seconds(2),
            // A window and the bucket before it.
            FlowLimit::Window { window_ns, .. } | FlowLimit::Strict { window_ns, .. } => {
                window_ns.saturating_mul(2)
            }
            FlowLimit::Pace { count, max_wait_ns } => turn_ns(count).saturating_add(max_wait_ns),
            // From empty to cold a bucket takes its period, whatever the cold factor no more than two.
            FlowLimit::WarmUp(numbers) => seconds(numbers.period_s).saturating_mul(2),
            FlowLimit::WarmUpPace {
                warm_up,
                max_wait_ns,
            } => {
                let cold = warm_up.count / f64::from(warm_up.cold_factor.max(1));
                let queue_ns = turn_ns(cold).saturating_add(max_wait_ns);
                queue_ns.max(seconds(warm_up.period_s).saturating_mul(2))
            }
        },
    }
}

/// The time of one request at a rate; nothing where the rate lets none through.
fn turn_ns(rate: f64) -> u64 {
    if rate > 0.0 { whole(1e9 / rate) } else { 0 }
}

/// The time in which the values of a rule are as at first sight, in s.
fn remembered_s(param: &ParamRule) -> u32 {
    // The least limit of a value: one with an item may have any.
    let least = if param.items.length == 0 {
        param.count
    } else {
        1
    };
    match param.limit {
        // Calls that run are in flight, which is looked at apart.
        ParamLimit::Concurrency => 0,
        ParamLimit::Bucket { burst, duration_s } => {
            let fills = burst.div_ceil(least.max(1)).saturating_add(1);
            duration_s.saturating_mul(fills).saturating_add(1)
        }
        ParamLimit::Strict { duration_s } => duration_s.saturating_mul(2),
        ParamLimit::Pace {
            duration_s,
            max_wait_ms,
        } => duration_s.saturating_add(max_wait_ms.div_ceil(1_000)),
    }
}

/// Whether a rule may be forgotten once its time is over: a breaker that is open or lets a probe through may not.
pub(super) fn is_calm(line: &Line, ledger: &Ledger, now_ns: u64) -> bool {
    let RuleKind::Degrade { breaker, .. } = &line.kind else {
        return true;
    };
    ledger.state(line.state).is_none_or(|state| {
        let word = state.word().load(tidegate_segment::sync::Ordering::Relaxed);
        breaker.state(word, now_ns) == BreakerState::Closed
    })
}

/// A number that changes when anything does that a rule remembers.
pub(super) fn digest(line: &Line, ledger: &Ledger) -> u64 {
    let lines = line.state..line.state.saturating_add(lines_of(line));
    let states = lines.filter_map(|index| ledger.state(index));
    let words = states.flat_map(|state| state.words());
    let digest = words.fold(0, mixed);
    match &line.kind {
        RuleKind::Param(param) => ledger.words_of(param.sets).fold(digest, mixed),
        RuleKind::Authority { .. } | RuleKind::Flow(_) | RuleKind::Degrade { .. } => digest,
    }
}

/// How many words [`digest`] reads.
pub(super) fn size(line: &Line) -> usize {
    let sets = match &line.kind {
        RuleKind::Param(param) => param.sets.length,
        RuleKind::Authority { .. } | RuleKind::Flow(_) | RuleKind::Degrade { .. } => 0,
    };
    let sets = usize::try_from(sets).unwrap_or(usize::MAX);
    sets.saturating_mul(value::WORDS)
}

/// Lines of state that a rule has: its own, and those of its items.
fn lines_of(line: &Line) -> u32 {
    let RuleKind::Param(param) = &line.kind else {
        return 1;
    };
    let items = usize::try_from(param.items.length / 2).unwrap_or(0);
    let of_items = items.div_ceil(ITEMS_OF_LINE);
    u32::try_from(of_items)
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

/// Takes one more word into a digest.
pub(super) const fn mixed(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
