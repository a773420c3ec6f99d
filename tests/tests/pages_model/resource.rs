//! The resources and the nodes of their origins and contexts, and what each is held to.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::Mode;
use tidegate_limits::param::token_bucket::TokenBucket;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, ResourceRecord,
    RuleKind, Slot, Subject,
};

pub(crate) const RESOURCES: usize = 7;
/// Resources, then the nodes of the origins of the last but one, then that of a context of the last one.
pub(crate) const PLACES: usize = RESOURCES + ORIGINS + 1;
pub(crate) const ORIGINS: usize = 2;
const CONTEXT: usize = RESOURCES + ORIGINS;
pub(crate) const VALUES: usize = 6;

/// The first slots belong to the overflow and to the inbound node.
pub(crate) const FIRST_SLOT: u32 = 2;

/// A resource with limits on its passes in a window and on its requests in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) passes: Option<u32>,
    pub(crate) inflight: Option<u32>,
}

/// The limits by place. The last three resources have rules of the table instead: for an argument, for each
/// origin, and for a context.
pub(crate) const LIMITS: [Limits; PLACES] = [
    limits(None, None),
    limits(Some(50), None),
    limits(None, Some(9)),
    limits(Some(60), Some(7)),
    limits(None, None),
    limits(None, None),
    limits(None, None),
    limits(None, Some(OF_ONE_PART)),
    limits(None, Some(OF_ONE_PART)),
    limits(None, Some(OF_ONE_PART)),
];
pub(crate) const OF_VALUES: usize = RESOURCES - 3;
const OF_ORIGINS: usize = RESOURCES - 2;
pub(crate) const OF_CONTEXTS: usize = RESOURCES - 1;

/// Requests of one origin, or in the context, at once.
const OF_ONE_PART: u32 = 5;

/// Calls of one value at once.
pub(crate) const RUNNING: u32 = 3;
/// Tokens of one value: enough for some, and never filled up again.
pub(crate) const TOKENS: u32 = 40_000;
const HOUR_S: u32 = 3_600 * 20;

pub(crate) const RUNNING_SETS: PoolSpan = PoolSpan {
    start: 0,
    length: 2,
};
pub(crate) const TOKEN_SETS: PoolSpan = PoolSpan {
    start: 2,
    length: 2,
};

const fn limits(passes: Option<u32>, inflight: Option<u32>) -> Limits {
    Limits { passes, inflight }
}

pub(crate) fn bucket() -> TokenBucket {
    TokenBucket::new(TOKENS, 0, HOUR_S)
}

/// The slot of a place, as it was given for that time.
pub(crate) fn slot(place: usize, generation: u16) -> Slot {
    Slot {
        index: FIRST_SLOT + u32::try_from(place).expect("a small number"),
        generation,
    }
}

/// Where a request counts besides its resource, by the number of its value.
pub(crate) const fn part(resource: usize, number: usize) -> Option<usize> {
    match resource {
        OF_ORIGINS => Some(RESOURCES + number % ORIGINS),
        // Others are in contexts that no rule looks at.
        OF_CONTEXTS if number < VALUES / 2 => Some(CONTEXT),
        _ => None,
    }
}

/// The hash of a value.
pub(crate) const fn value(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The rules of the table. Tokens come first: what a request took stays taken where a later rule refuses
/// it. So each refusal by calls at once has taken one, whether their limit was reached when the request
/// looked or only when it committed. The other way round only the latter would have.
///
/// The last but one is for each origin, and the last one for a context: their nodes are held to it, or where they have
/// none the resource's own.
pub(crate) fn rules(set: u32) -> [BoardRule; 4] {
    let param = |state, limit, count, sets| BoardRule {
        number: set,
        mode: Mode::Enforce,
        state,
        quirks: Quirks::None,
        kind: RuleKind::Param(ParamRule {
            index: 0,
            limit,
            count,
            items: PoolSpan::default(),
            sets,
        }),
    };
    let of_parts = |state, origin, subject| BoardRule {
        number: set,
        mode: Mode::Enforce,
        state,
        quirks: Quirks::None,
        kind: RuleKind::Flow(FlowRule {
            origin,
            subject,
            limit: FlowLimit::Concurrency(OF_ONE_PART),
        }),
    };
    let of_context = Subject::Chain(value(CONTEXT));
    let tokens = ParamLimit::Bucket {
        burst: 0,
        duration_s: HOUR_S,
    };
    [
        param(0, tokens, TOKENS, TOKEN_SETS),
        param(1, ParamLimit::Concurrency, RUNNING, RUNNING_SETS),
        of_parts(2, OriginTest::Other(PoolSpan::default()), Subject::Direct),
        of_parts(3, OriginTest::Any, of_context),
    ]
}

/// The rules of a place in the table.
pub(crate) fn rules_of(place: usize, rules: &[BoardRule; 4]) -> &[BoardRule] {
    match place {
        OF_VALUES => &rules[..2],
        OF_ORIGINS => &rules[2..3],
        OF_CONTEXTS => &rules[3..],
        _ => &[],
    }
}

/// The record of a place in the set with that number.
pub(crate) fn record(place: usize, set: u32) -> ResourceRecord {
    let Limits { passes, inflight } = LIMITS[place];
    let is_plain = place < OF_VALUES;
    let need = |bit: u32, wanted: bool| if wanted { bit } else { 0 };
    let (rules_first, rules) = match place {
        OF_VALUES => (0, 2),
        OF_ORIGINS => (2, 1),
        OF_CONTEXTS => (3, 1),
        _ => (0, 0),
    };
    ResourceRecord {
        needs: Needs(
            need(Needs::QPS, passes.is_some())
                | need(Needs::CONCURRENCY, is_plain && inflight.is_some())
                | need(Needs::RULES, rules > 0)
                | need(Needs::ORIGINS, place == OF_ORIGINS)
                | need(Needs::CONTEXTS, place == OF_CONTEXTS)
                | need(Needs::COUNTED, place >= OF_ORIGINS),
        ),
        generation: 1,
        rules_first,
        rules,
        qps_limit: passes.unwrap_or(0),
        qps_rule: set,
        concurrency_limit: if is_plain { inflight.unwrap_or(0) } else { 0 },
        concurrency_rule: set,
        ..ResourceRecord::default()
    }
}
