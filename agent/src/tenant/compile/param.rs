//! Hot-parameter rules: the values with a count of their own go into the pool.

use std::time::Duration;

use tidegate_abi::argument::{ArgumentKind, boolean_hash, float_hash, integer_hash, text_hash};
use tidegate_segment::board::{ParamLimit, ParamRule, PoolSpan, RuleKind};

use super::Pool;
use crate::rule::Param;
use crate::rule::param::{ItemType, ItemValue, ParamGrade, ParamItem};

pub(super) fn kind(param: &Param, pool: &mut Pool) -> RuleKind {
    let items = param.items.iter();
    let pairs = items.flat_map(|item| [item_hash(item), u64::from(item.count)]);
    RuleKind::Param(ParamRule {
        index: param.index,
        limit: match param.grade {
            ParamGrade::Concurrency => ParamLimit::Concurrency,
            ParamGrade::Bucket {
                window,
                strict: true,
                ..
            } => ParamLimit::Strict {
                duration_s: seconds(window),
            },
            ParamGrade::Bucket { window, burst, .. } => ParamLimit::Bucket {
                burst,
                duration_s: seconds(window),
            },
            ParamGrade::Pace {
                window,
                max_queueing_time,
            } => ParamLimit::Pace {
                duration_s: seconds(window),
                max_wait_ms: u32::try_from(max_queueing_time.as_millis()).unwrap_or(u32::MAX),
            },
        },
        count: param.count,
        items: pool.put(pairs.collect()),
        sets: PoolSpan::default(),
    })
}

fn item_hash(item: &ParamItem) -> u64 {
    let kind = argument_type(item.kind);
    match &item.value {
        ItemValue::Text(text) => text_hash(kind, text),
        ItemValue::Integer(value) => integer_hash(kind, *value),
        ItemValue::Float(bits) => float_hash(kind, f64::from_bits(*bits)),
        ItemValue::Flag(value) => boolean_hash(*value),
    }
}

const fn argument_type(kind: ItemType) -> ArgumentKind {
    match kind {
        ItemType::Text => ArgumentKind::Text,
        ItemType::Int => ArgumentKind::Int,
        ItemType::Long => ArgumentKind::Long,
        ItemType::Double => ArgumentKind::Double,
        ItemType::Float => ArgumentKind::Float,
        ItemType::Byte => ArgumentKind::Byte,
        ItemType::Short => ArgumentKind::Short,
        ItemType::Boolean => ArgumentKind::Boolean,
        ItemType::Char => ArgumentKind::Char,
    }
}

/// Whole seconds, at least one.
fn seconds(window: Duration) -> u32 {
    u32::try_from(window.as_secs()).unwrap_or(u32::MAX).max(1)
}
