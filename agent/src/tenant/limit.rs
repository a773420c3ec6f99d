//! The plain limits of a rule set, found by the name of a resource.
//!
//! A node's record holds one limit of passes and one in flight, for all callers of the resource. The
//! rules that fit that are made into [`Limit`]s here; a rule of another kind, or one that paces, warms
//! up or looks at origins, contexts or other resources, is not, and [`Limits::not_in_force`] says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_limits::window::COUNT_MAX;

use crate::rule::flow::{Behavior, Flow, Grade, LimitOrigin, Strategy};
use crate::rule::{Amount, Body, Pattern, Resource, Rule, RuleSet};

/// The window of a node's passes.
const WINDOW: Duration = Duration::from_secs(1);

/// What a plain rule limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Passes in a window of one second.
    Qps,
    /// Requests in flight.
    Concurrency,
}

/// A plain rule: one number that a node's record can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub quantity: Quantity,
    /// Whether it refuses or observes.
    pub mode: Mode,
    /// The most that is allowed.
    pub most: u32,
    /// Number of the rule in its set.
    pub rule: u32,
}

/// The plain limits of a rule set.
#[derive(Debug, Default)]
pub struct Limits {
    rules: Arc<RuleSet>,
    named: HashMap<String, Vec<Limit>>,
    patterns: Vec<(Pattern, Limit)>,
    not_in_force: Vec<usize>,
}

impl Limits {
    /// Finds the plain rules of a set.
    pub fn of(rules: Arc<RuleSet>) -> Self {
        let mut limits = Self::default();
        for (index, rule) in rules.rules().iter().enumerate() {
            let Some(flow) = plain_flow(rule) else {
                limits.not_in_force.push(index);
                continue;
            };
            let limit = limit(rule, flow, index);
            match &flow.resource {
                Resource::Name(name) => limits.named.entry(name.clone()).or_default().push(limit),
                Resource::Pattern(pattern) => limits.patterns.push((pattern.clone(), limit)),
            }
        }
        limits.rules = rules;
        limits
    }

    /// The whole rule set.
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Rules that this version takes and shows but does not hold requests against.
    pub fn not_in_force(&self) -> impl Iterator<Item = &Rule> {
        let places = self.not_in_force.iter();
        places.filter_map(|index| self.rules.rules().get(*index))
    }

    /// Names of the resources that rules name.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The limits of a resource: those that name it, and those whose pattern matches it.
    pub fn of_resource<'l>(&'l self, resource: &'l str) -> impl Iterator<Item = Limit> + 'l {
        let named = self.named.get(resource).into_iter().flatten();
        let patterns = self.patterns.iter();
        let matching = patterns.filter(|(pattern, _limit)| pattern.matches(resource));
        named
            .copied()
            .chain(matching.map(|(_pattern, limit)| *limit))
    }

    /// The id of a rule.
    pub fn id(&self, rule: u32) -> Option<&str> {
        let index = usize::try_from(rule).ok()?;
        self.rules.rules().get(index).map(|rule| rule.id.as_str())
    }
}

/// The flow rule that a record can hold, if it is one.
fn plain_flow(rule: &Rule) -> Option<&Flow> {
    let Body::Flow(flow) = &rule.body else {
        return None;
    };
    let plain_grade = match flow.grade {
        Grade::Concurrency => true,
        Grade::Qps {
            window,
            strict,
            behavior,
        } => window == WINDOW && !strict && behavior == Behavior::Reject,
    };
    let plain = plain_grade
        && flow.limit_origin == LimitOrigin::Default
        && flow.strategy == Strategy::Direct
        && flow.cluster.is_none();
    plain.then_some(flow)
}

fn limit(rule: &Rule, flow: &Flow, index: usize) -> Limit {
    Limit {
        quantity: match flow.grade {
            Grade::Concurrency => Quantity::Concurrency,
            Grade::Qps { .. } => Quantity::Qps,
        },
        mode: rule.mode,
        most: whole(flow.count),
        rule: u32::try_from(index).unwrap_or(u32::MAX),
    }
}

/// The whole requests that fit under a count: its floor, since requests are admitted as a whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an amount is finite and not negative, and the upper bound is checked"
)]
fn whole(count: Amount) -> u32 {
    let count = count.get();
    if count >= f64::from(COUNT_MAX) {
        return COUNT_MAX;
    }
    count as u32
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::schema::source::Source;
    use crate::rule::Quirks;
    use crate::rule_source::directory::read;

    /// The limits of a rule file.
    pub(crate) fn limits(toml: &str) -> Limits {
        let read = read("rules.toml".as_ref(), &Source::new("rules.toml", toml));
        assert_eq!(read.faults, []);
        let rules = RuleSet::build(read.rules, Quirks::None).unwrap();
        Limits::of(Arc::new(rules))
    }

    fn most(limits: &Limits, resource: &str) -> Vec<(Quantity, u32)> {
        let found = limits.of_resource(resource);
        found.map(|limit| (limit.quantity, limit.most)).collect()
    }

    #[test]
    fn plain_rules_are_found_by_name_and_pattern() {
        let limits = limits(
            r#"
            [[flow]]
            id = "first"
            resource = "a"
            count = 2.9
            [[flow]]
            resource = "a|b"
            regex = true
            grade = "concurrency"
            count = 7
            [[flow]]
            resource = "b"
            count = 4294967295
            "#,
        );
        let (qps, concurrency) = (Quantity::Qps, Quantity::Concurrency);
        assert_eq!(most(&limits, "a"), [(qps, 2), (concurrency, 7)]);
        assert_eq!(most(&limits, "b"), [(qps, COUNT_MAX), (concurrency, 7)]);
        assert_eq!(most(&limits, "ab"), []);
        assert_eq!(limits.id(0), Some("first"));
        assert_eq!(limits.id(3), None);
    }

    #[test]
    fn a_rule_that_a_record_cannot_hold_is_told() {
        let limits = limits(
            r#"
            [[flow]]
            id = "paced"
            resource = "a"
            count = 5
            behavior = "pace"
            [[flow]]
            id = "strict"
            resource = "a"
            count = 5
            strict = true
            [[degrade]]
            id = "breaker"
            resource = "a"
            grade = "error_count"
            threshold = 5
            recovery_timeout = "10s"
            "#,
        );
        assert_eq!(most(&limits, "a"), []);
        let ids: Vec<_> = limits.not_in_force().map(|rule| &rule.id).collect();
        assert_eq!(ids, ["paced", "strict", "breaker"]);
    }
}
