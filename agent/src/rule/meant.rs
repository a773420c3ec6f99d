//! What rules mean where Sentinel's way to read them is not asked for.

use std::collections::HashSet;

use super::authority::Authority;
use super::flow::{Flow, LimitOrigin};
use super::param::{ItemType, ItemValue, Param, ParamItem};
use super::{Body, Rule};

/// A rule as it is meant: a flow rule of Sentinel's form for a list of origins is one for each of them.
pub(super) fn as_meant(rule: Rule) -> Vec<Rule> {
    let of_sentinel = rule.of_sentinel;
    match &rule.body {
        Body::Authority(authority) if of_sentinel => {
            let body = Body::Authority(trimmed(authority));
            vec![Rule { body, ..rule }]
        }
        Body::Flow(flow) if of_sentinel => for_each_origin(flow, &rule),
        Body::Param(param) => {
            let body = Body::Param(for_untyped_values(param));
            vec![Rule { body, ..rule }]
        }
        Body::Authority(_) | Body::Flow(_) | Body::System(_) | Body::Degrade(_) => vec![rule],
    }
}

impl LimitOrigin {
    /// What a text selects.
    pub(super) fn of(text: &str) -> Self {
        match text {
            "default" => Self::Default,
            "other" => Self::Other,
            name => Self::Name(name.to_owned()),
        }
    }
}

/// The origins of a list with commas between, without the blanks around them, each once.
pub(super) fn origins(list: &str) -> Vec<&str> {
    let mut seen = HashSet::new();
    let parts = list.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty() && seen.insert(*part))
        .collect()
}

fn trimmed(authority: &Authority) -> Authority {
    let list = authority.origins.join(",");
    Authority {
        origins: origins(&list).into_iter().map(str::to_owned).collect(),
        ..authority.clone()
    }
}

fn for_each_origin(flow: &Flow, rule: &Rule) -> Vec<Rule> {
    let LimitOrigin::Name(list) = &flow.limit_origin else {
        return vec![rule.clone()];
    };
    let origins = origins(list);
    let several = origins.len() > 1;
    let of = |origin: &&str| Rule {
        id: if several {
            format!("{}:{origin}", rule.id)
        } else {
            rule.id.clone()
        },
        body: Body::Flow(Flow {
            limit_origin: LimitOrigin::of(origin),
            ..flow.clone()
        }),
        path: if several {
            format!("{}:{origin}", rule.path)
        } else {
            rule.path.clone()
        },
        ..rule.clone()
    };
    origins.iter().map(of).collect()
}

/// A caller that names no type gives a number as an int, a long or a double, and a character as a text. Whatever number
/// type a value of the rule has, it is meant.
fn for_untyped_values(param: &Param) -> Param {
    let key = |item: &ParamItem| (item.kind, item.value.clone());
    let mut seen: HashSet<_> = param.items.iter().map(key).collect();
    let mut param = param.clone();
    let untyped: Vec<ParamItem> = param.items.iter().flat_map(untyped).collect();
    let new = untyped.into_iter().filter(|item| seen.insert(key(item)));
    param.items.extend(new);
    param
}

/// The number or character of an item as callers give it that name no type; none where it is neither.
fn untyped(item: &ParamItem) -> Vec<ParamItem> {
    let (whole, number) = match item.value {
        ItemValue::Integer(whole) => (Some(whole), exact(whole)),
        ItemValue::Float(bits) => {
            let number = f64::from_bits(bits);
            (whole_of(number), Some(number))
        }
        ItemValue::Text(_) if item.kind == ItemType::Char => {
            let kind = ItemType::Text;
            return vec![ParamItem {
                kind,
                ..item.clone()
            }];
        }
        ItemValue::Text(_) | ItemValue::Flag(_) => return Vec::new(),
    };
    let whole = whole.map(|whole| {
        let kind = i32::try_from(whole).map_or(ItemType::Long, |_fits| ItemType::Int);
        (kind, ItemValue::Integer(whole))
    });
    let number = number.map(|number| (ItemType::Double, ItemValue::Float(number.to_bits())));
    let count = item.count;
    let all = whole.into_iter().chain(number);
    all.map(|(kind, value)| ParamItem { kind, value, count })
        .collect()
}

/// Whole numbers up to this are as exact in a double.
const EXACT: i64 = 1 << 53;

#[expect(clippy::cast_precision_loss, reason = "small enough to be exact")]
fn exact(whole: i64) -> Option<f64> {
    (-EXACT..=EXACT).contains(&whole).then_some(whole as f64)
}

#[expect(clippy::cast_possible_truncation, reason = "compared afterwards")]
fn whole_of(number: f64) -> Option<i64> {
    let whole = number as i64;
    let back = exact(whole).map(f64::to_bits);
    (back == Some((number + 0.0).to_bits())).then_some(whole)
}
