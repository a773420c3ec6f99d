//! The resources, and what each is held to.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::Mode;
use tidegate_limits::param::token_bucket::TokenBucket;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{ParamLimit, ParamRule, Record, Rule, RuleKind, Slot, Span};

pub(crate) const RESOURCES: usize = 5;
pub(crate) const VALUES: usize = 6;

/// The first slots belong to the overflow and to the inbound node.
pub(crate) const FIRST_SLOT: u32 = 2;

/// A resource with limits on its passes in a window and on its requests in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) passes: Option<u32>,
    pub(crate) inflight: Option<u32>,
}

/// The limits by resource; the last one has rules for its argument instead.
pub(crate) const LIMITS: [Limits; RESOURCES] = [
    limits(None, None),
    limits(Some(50), None),
    limits(None, Some(9)),
    limits(Some(60), Some(7)),
    limits(None, None),
];
pub(crate) const OF_VALUES: usize = RESOURCES - 1;

/// Calls of one value at once.
pub(crate) const RUNNING: u32 = 3;
/// Tokens of one value: enough for some, and never filled up again.
pub(crate) const TOKENS: u32 = 40_000;
const HOUR_S: u32 = 3_600 * 20;

pub(crate) const RUNNING_SETS: Span = Span {
    start: 0,
    length: 2,
};
pub(crate) const TOKEN_SETS: Span = Span {
    start: 2,
    length: 2,
};

const fn limits(passes: Option<u32>, inflight: Option<u32>) -> Limits {
    Limits { passes, inflight }
}

pub(crate) fn bucket() -> TokenBucket {
    TokenBucket::new(TOKENS, 0, HOUR_S)
}

pub(crate) fn slot(resource: usize) -> Slot {
    Slot {
        index: FIRST_SLOT + u32::try_from(resource).expect("a small number"),
        generation: 1,
    }
}

/// The hash of a value.
pub(crate) const fn value(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The rules of the table. Tokens come first: what a request took stays taken where a later rule refuses
/// it. So each refusal by calls at once has taken one, whether their limit was reached when the request
/// looked or only when it committed. The other way round only the latter would have.
pub(crate) fn rules(set: u32) -> [Rule; 2] {
    let param = |state, limit, count, sets| Rule {
        number: set,
        mode: Mode::Enforce,
        state,
        quirks: Quirks::None,
        kind: RuleKind::Param(ParamRule {
            index: 0,
            limit,
            count,
            items: Span::default(),
            sets,
        }),
    };
    let tokens = ParamLimit::Bucket {
        burst: 0,
        duration_s: HOUR_S,
    };
    [
        param(0, tokens, TOKENS, TOKEN_SETS),
        param(1, ParamLimit::Concurrency, RUNNING, RUNNING_SETS),
    ]
}

/// The record of a resource in the set with that number.
pub(crate) fn record(resource: usize, set: u32) -> Record {
    let Limits { passes, inflight } = LIMITS[resource];
    let of_values = resource == OF_VALUES;
    let need = |bit: u32, wanted: bool| if wanted { bit } else { 0 };
    Record {
        needs: Needs(
            need(Needs::QPS, passes.is_some())
                | need(Needs::CONCURRENCY, inflight.is_some())
                | need(Needs::RULES, of_values),
        ),
        generation: 1,
        rules: if of_values { 2 } else { 0 },
        qps_limit: passes.unwrap_or(0),
        qps_rule: set,
        concurrency_limit: inflight.unwrap_or(0),
        concurrency_rule: set,
        ..Record::default()
    }
}
