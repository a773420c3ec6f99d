//! When an option that a file gives has no effect, so that nobody takes it for a limit that holds.
//!
//! Each kind of rule answers for each of its options, in one table beside them ([`Effects`]); a test compares
//! the table with the options. What has no effect is a warning: it is taken, and said wherever warnings are.

use super::cluster::Cluster;
use super::expiry::Expires;
use crate::calendar::unix_now;
use crate::config::schema::Value;
use crate::config::schema::settings::Section;

/// Why an option has no effect: when it would have one, and what that means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoEffect {
    /// What may stand there, or with what.
    pub allowed: &'static str,
    /// What it means as it stands.
    pub hint: String,
}

impl NoEffect {
    /// Says when an option would have an effect, and why it has none.
    pub(super) fn new(allowed: &'static str, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        Self { allowed, hint }
    }

    /// The same where `idle` holds.
    pub(super) fn when(idle: bool, allowed: &'static str, hint: &str) -> Option<Self> {
        idle.then(|| Self::new(allowed, hint))
    }
}

/// The answer for one option.
#[derive(Debug)]
pub struct Effect<O: 'static> {
    /// Key of the option.
    pub key: &'static str,
    /// Why it has no effect; `None` where it has one.
    pub lacking: fn(&O) -> Option<NoEffect>,
}

impl<O> Effect<O> {
    /// An option that may have no effect.
    pub(super) const fn new(key: &'static str, lacking: fn(&O) -> Option<NoEffect>) -> Self {
        Self { key, lacking }
    }

    /// An option that has an effect whatever the others are, or whose values without one are refused.
    pub(super) const fn always(key: &'static str) -> Self {
        Self {
            key,
            lacking: |_options| None,
        }
    }
}

/// Options that answer for their effect.
pub trait Effects: Sized + 'static {
    /// An answer for each option.
    const EFFECTS: &'static [Effect<Self>];

    /// Warns of each option of the section that has no effect.
    fn warn(&self, section: &mut Section<'_, '_>) {
        for effect in Self::EFFECTS {
            if !section.gives(effect.key) {
                continue;
            }
            if let Some(NoEffect { allowed, hint }) = (effect.lacking)(self) {
                section.warn(effect.key, allowed, hint);
            }
        }
    }
}

/// Whether a value asks for something: an option that says "no" or "nothing" asks for none.
pub(crate) const fn asks(value: &Value) -> bool {
    match value {
        Value::Flag(flag) => *flag,
        Value::Integer(number) => *number != 0,
        Value::Number(number) => *number != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Table(members) => !members.is_empty(),
        Value::Null => false,
        Value::Other(_) => true,
    }
}

/// A rule that is off does nothing.
pub(super) fn off(mode: tidegate_abi::decision::Mode) -> Option<NoEffect> {
    let off = mode == tidegate_abi::decision::Mode::Off;
    NoEffect::when(
        off,
        "enforce or observe",
        "the rule does nothing while it is off",
    )
}

/// A time of the calendar may be over already.
pub(super) fn ended(expires: Option<Expires>) -> Option<NoEffect> {
    let Some(Expires::At(time)) = expires else {
        return None;
    };
    let over = time <= unix_now();
    NoEffect::when(
        over,
        "a time to come",
        "it has passed, so the rule holds nobody",
    )
}

/// Without a token server a rule with a cluster part acts on this host alone, or not at all.
pub(super) fn alone(cluster: Option<&Cluster>, falls_back: bool) -> Option<NoEffect> {
    let cluster = cluster?;
    let hint = if !cluster.fallback_to_local.unwrap_or(falls_back) {
        "no token server is asked: without a fallback to this host the rule holds nobody"
    } else if cluster.threshold == super::cluster::Threshold::Global {
        "no token server is asked: each host admits the whole count by itself, so all of them admit it \
         as many times as there are hosts"
    } else {
        "no token server is asked: the rule acts on this host alone"
    };
    Some(NoEffect::new("a rule of this host", hint))
}

/// A name that was most likely meant as a pattern.
pub(super) fn literal(name: &str, takes_patterns: bool) -> Option<NoEffect> {
    if !is_like_pattern(name) {
        return None;
    }
    let hint = "it is compared letter by letter, so only a resource of just this name is meant";
    let allowed = if takes_patterns {
        "a name, or a pattern with regex = true"
    } else {
        "a name; this kind of rule takes no pattern"
    };
    Some(NoEffect::new(allowed, hint))
}

/// Whether a text has parts that regular expressions have and names hardly ever.
fn is_like_pattern(name: &str) -> bool {
    let parts = [
        ".*", ".+", "\\d", "\\w", "\\.", "\\s", "a-z]", "A-Z]", "0-9]", "(?:",
    ];
    let alternatives = name.contains('(') && name.contains('|') && name.contains(')');
    let anchored = name.starts_with('^') || (name.len() > 1 && name.ends_with('$'));
    name == "*" || alternatives || anchored || parts.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_o10_a_name_that_looks_like_a_pattern_is_told_from_one_that_does_not() {
        for pattern in [
            "report-.*",
            "/v\\d+/users",
            "^order",
            "order$",
            "(a|b)",
            "[a-z]+",
            "a.+",
            "*",
        ] {
            assert!(is_like_pattern(pattern), "{pattern}");
        }
        for name in [
            "GET:/orders/{id}",
            "/api/**",
            "com.shop.Order:create(java.lang.String)",
            "a.b.c",
            "SELECT * FROM a",
            "$",
            "a|b",
            "ipc:[::1]",
            "C++",
            "what?",
        ] {
            assert!(!is_like_pattern(name), "{name}");
        }
    }
}
