//! What changes from one rule set to the next, in words.

use std::fmt;

use super::set::Fate;
use super::{Body, Rule, RuleSet};
use crate::words::number;

/// A rule that was added, removed or given other limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// What happened to it.
    pub what: RuleChangeWord,
    /// It with its kind, and its limit before and after.
    pub text: String,
}

/// What happened to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleChangeWord {
    /// There was none like it.
    Added,
    /// There is none like it any more.
    Removed,
    /// It has other limits or another mode, and goes on from where it was.
    Changed,
}

impl RuleChangeWord {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

impl fmt::Display for RuleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what.name(), self.text)
    }
}

/// What changes when a set takes the place of an old one, in the order of the new one.
pub fn changes(new: &RuleSet, old: &RuleSet) -> Vec<RuleChange> {
    let diff = new.diff(old);
    let mut changes = Vec::new();
    for (rule, fate) in new.rules().iter().zip(&diff.fates) {
        match fate {
            Fate::Unchanged(_) => {}
            Fate::Retuned(before) => {
                changes.extend(old.rules().get(*before).map(|old| changed(rule, old)));
            }
            Fate::New => changes.push(RuleChange {
                what: RuleChangeWord::Added,
                text: with_limit(rule),
            }),
        }
    }
    let gone = diff.gone.iter().filter_map(|at| old.rules().get(*at));
    changes.extend(gone.map(|rule| RuleChange {
        what: RuleChangeWord::Removed,
        text: with_limit(rule),
    }));
    changes
}

/// The name of the option that is a rule's limit, and its value.
fn limit(body: &Body) -> Option<(&'static str, f64)> {
    match body {
        Body::Flow(flow) => Some(("count", flow.count.get())),
        Body::Param(param) => Some(("count", param.count.into())),
        Body::Degrade(degrade) => Some(("threshold", degrade.trip.told().1)),
        Body::Authority(_) | Body::System(_) => None,
    }
}

fn named(rule: &Rule) -> String {
    format!("{} {}", rule.body.kind().name(), rule.id)
}

fn with_limit(rule: &Rule) -> String {
    let limit = limit(&rule.body);
    let limit = limit.map_or_else(String::new, |(name, value)| {
        format!(" ({name} {})", number(value))
    });
    named(rule) + &limit
}

fn changed(rule: &Rule, old: &Rule) -> RuleChange {
    let mut parts = Vec::new();
    if let (Some((name, after)), Some((_name, before))) = (limit(&rule.body), limit(&old.body)) {
        let [before, after] = [before, after].map(number);
        if before != after {
            parts.push(format!("{name} {before} -> {after}"));
        }
    }
    if rule.mode != old.mode {
        parts.push(format!("mode {} -> {}", old.mode.name(), rule.mode.name()));
    }
    let parts = if parts.is_empty() {
        "other limits".to_owned()
    } else {
        parts.join(", ")
    };
    RuleChange {
        what: RuleChangeWord::Changed,
        text: format!("{} ({parts})", named(rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::bulkhead::tests::set;

    fn told(new: &str, old: &str) -> Vec<String> {
        let changes = changes(&set(new), &set(old));
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_change_is_told_with_the_limits_before_and_after() {
        let old = r#"
[[flow]]
id = "orders"
resource = "order"
count = 100
[[flow]]
id = "same"
resource = "same"
count = 5
[[degrade]]
id = "pay"
resource = "pay"
grade = "error_count"
threshold = 3
recovery_timeout = "5s"
[[authority]]
resource = "gone"
origins = ["shop"]
"#;
        let new = r#"
[[param]]
id = "by user"
resource = "order"
index = 0
count = 7
[[flow]]
id = "same"
resource = "same"
count = 5
[[flow]]
id = "orders"
resource = "order"
count = 120
mode = "observe"
[[degrade]]
id = "pay"
resource = "pay"
grade = "error_count"
threshold = 5
recovery_timeout = "5s"
"#;
        let changes = told(new, old);
        let expected = [
            "added param by user (count 7)",
            "changed flow orders (count 100 -> 120, mode enforce -> observe)",
            "changed degrade pay (threshold 3 -> 5)",
        ];
        for expected in expected {
            assert!(changes.contains(&expected.to_owned()), "{changes:?}");
        }
        assert!(changes[3].starts_with("removed authority "), "{changes:?}");
        assert_eq!(changes.len(), 4, "{changes:?}");
        assert!(told(new, new).is_empty());
    }
}
