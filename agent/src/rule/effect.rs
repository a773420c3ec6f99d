//! Answers of rules to "when has this option no effect?".

use super::cluster::Cluster;
use super::expiry::Expires;
use crate::calendar::unix_now;
pub use crate::schema::effect::{Effects, Idle, OptionEffect};

/// A rule that is off does nothing.
pub(super) fn off(mode: tidegate_abi::decision::Mode) -> Option<Idle> {
    let off = mode == tidegate_abi::decision::Mode::Off;
    Idle::when(
        off,
        "enforce or observe",
        "the rule does nothing while it is off",
    )
}

/// A time of the calendar may be over already.
pub(super) fn ended(expires: Option<Expires>) -> Option<Idle> {
    let Some(Expires::At(time)) = expires else {
        return None;
    };
    let over = time <= unix_now();
    Idle::when(
        over,
        "a time to come",
        "it has passed, so the rule limits nobody",
    )
}

/// Without a token server a rule with a cluster part acts on this host alone, or not at all.
pub(super) fn alone(cluster: Option<&Cluster>, falls_back: bool) -> Option<Idle> {
    let cluster = cluster?;
    let hint = if !cluster.fallback_to_local.unwrap_or(falls_back) {
        "no token server is asked: without a fallback to this host the rule limits nobody"
    } else if cluster.threshold == super::cluster::ClusterThreshold::Global {
        "no token server is asked: each host admits the whole count by itself, so all of them admit it \
         as many times as there are hosts"
    } else {
        "no token server is asked: the rule acts on this host alone"
    };
    Some(Idle::new("a rule of this host", hint))
}

/// A name that was most likely meant as a pattern.
pub(super) fn literal(name: &str, takes_patterns: bool) -> Option<Idle> {
    if !is_like_pattern(name) {
        return None;
    }
    let hint = "it is compared literally, so it matches only a resource of exactly this name";
    let allowed = if takes_patterns {
        "a name, or a pattern with regex = true"
    } else {
        "a name; this kind of rule takes no pattern"
    };
    Some(Idle::new(allowed, hint))
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
