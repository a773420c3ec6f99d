//! Flow rules.

use std::time::Duration;

use tidegate_abi::board::name_hash;
use tidegate_segment::board::{
    FlowLimit, FlowRule, OriginTest, RuleFault, RuleKind, Subject, WarmUpNumbers,
};

use super::plain::SECOND;
use super::{Compiler, nanos};
use crate::rule::Flow;
use crate::rule::flow::{Behavior, Grade, LimitOrigin, Strategy};
use crate::tenant::rule_index::IndexedRule;

/// What a flow rule becomes; `all` are the rules of the resource.
pub(super) fn kind(
    flow: &Flow,
    all: &[IndexedRule<'_>],
    compiler: &mut Compiler<'_>,
) -> Result<RuleKind, RuleFault> {
    let origin = match &flow.limit_origin {
        LimitOrigin::Default => OriginTest::Any,
        LimitOrigin::Name(name) => OriginTest::Is(name_hash(name.as_bytes())),
        LimitOrigin::Other => OriginTest::Other(compiler.pool.put(named_origins(all))),
    };
    let subject = match &flow.strategy {
        Strategy::Direct => Subject::Direct,
        Strategy::Relate(resource) => {
            Subject::Relate((compiler.slot_of)(resource).ok_or(RuleFault::Full(0))?)
        }
        Strategy::Chain(context) => Subject::Chain(name_hash(context.as_bytes())),
        // No context has an empty name.
        Strategy::Nowhere => Subject::Chain(name_hash(b"")),
    };
    Ok(RuleKind::Flow(FlowRule {
        origin,
        subject,
        limit: limit(flow),
    }))
}

/// Hashes of what flow rules of the resource select origins by. An origin that is called as one of the
/// selectors counts as named, as in Sentinel.
fn named_origins(all: &[IndexedRule<'_>]) -> Vec<u64> {
    let flows = all.iter().filter_map(|placed| placed.rule.body.flow());
    let named = flows.map(|flow| match &flow.limit_origin {
        LimitOrigin::Default => "default",
        LimitOrigin::Other => "other",
        LimitOrigin::Name(name) => name,
    });
    named.map(|name| name_hash(name.as_bytes())).collect()
}

pub(super) fn limit(flow: &Flow) -> FlowLimit {
    let count = flow.count.get();
    match flow.grade {
        Grade::Concurrency => FlowLimit::Concurrency(flow.count.whole()),
        Grade::Qps {
            window,
            strict,
            behavior,
        } => match behavior {
            Behavior::Reject => reject(flow.count.whole(), window, strict),
            Behavior::WarmUp {
                period,
                cold_factor,
            } => FlowLimit::WarmUp(warming(count, period, cold_factor)),
            Behavior::Pace { max_queueing_time } => FlowLimit::Pace {
                count,
                max_wait_ns: nanos(max_queueing_time),
            },
            Behavior::WarmUpPace {
                period,
                cold_factor,
                max_queueing_time,
            } => FlowLimit::WarmUpPace {
                warm_up: warming(count, period, cold_factor),
                max_wait_ns: nanos(max_queueing_time),
            },
        },
    }
}

fn reject(limit: u32, window: Duration, strict: bool) -> FlowLimit {
    let window_ns = nanos(window);
    match (strict, window == SECOND) {
        (true, _) => FlowLimit::Strict { limit, window_ns },
        (false, true) => FlowLimit::Qps(limit),
        (false, false) => FlowLimit::Window { limit, window_ns },
    }
}

fn warming(count: f64, period: Duration, cold_factor: u32) -> WarmUpNumbers {
    WarmUpNumbers {
        count,
        period_s: u32::try_from(period.as_secs()).unwrap_or(u32::MAX),
        cold_factor,
    }
}
