//! The rules of a set, found by the name of a resource, in the order in which the gate asks them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use tidegate_abi::message::Part;

pub mod overflow;
pub mod system;

use crate::rule::degrade::GuardedResources;
use crate::rule::flow::{LimitOrigin, Strategy};
use crate::rule::{Body, Flow, Pattern, Rule, RuleResource, RuleSet};
use system::MergedSystem;

/// A rule of a set.
#[derive(Debug, Clone, Copy)]
pub struct IndexedRule<'l> {
    /// Its place in the set.
    pub index: usize,
    /// The rule.
    pub rule: &'l Rule,
}

/// A rule set, by resource.
#[derive(Debug, Default)]
pub struct RuleIndex {
    rules: Arc<RuleSet>,
    named: HashMap<String, Vec<usize>>,
    patterns: Vec<usize>,
    /// What names without a slot share, by the patterns.
    shared: Vec<overflow::Shared>,
    /// Breakers for resources that have none of their own.
    unguarded: Vec<usize>,
    /// Resources at which rules of others look.
    related: HashSet<String>,
    not_in_force: Vec<usize>,
    system: MergedSystem,
}

impl RuleIndex {
    /// Finds who the rules of a set are for.
    pub fn of(rules: Arc<RuleSet>) -> Self {
        let mut limits = Self {
            system: MergedSystem::of(&rules),
            ..Self::default()
        };
        for (index, rule) in rules.rules().iter().enumerate() {
            if rule.rest().is_none() {
                limits.place(index, &rule.body);
            } else {
                limits.not_in_force.push(index);
            }
        }
        limits.rules = rules;
        limits.share();
        limits
    }

    fn place(&mut self, index: usize, body: &Body) {
        if let Body::Flow(Flow {
            strategy: Strategy::Relate(other),
            ..
        }) = body
        {
            self.related.insert(other.clone());
        }
        match body {
            Body::System(_) => {}
            Body::Authority(authority) => self.name(&authority.resource, index),
            Body::Degrade(degrade) => match &degrade.resource {
                GuardedResources::Name(name) => self.name(name, index),
                GuardedResources::Unguarded => self.unguarded.push(index),
            },
            Body::Flow(Flow { resource, .. })
            | Body::Param(crate::rule::Param { resource, .. }) => match resource {
                RuleResource::Name(name) => self.name(name, index),
                RuleResource::Pattern(_) => self.patterns.push(index),
            },
        }
    }

    fn name(&mut self, name: &str, index: usize) {
        self.named.entry(name.to_owned()).or_default().push(index);
    }

    /// The whole rule set.
    pub const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// The system rules, merged.
    pub const fn system(&self) -> MergedSystem {
        self.system
    }

    /// Rules that requests are not held against: those that are off or have ended, and those that leave all to a
    /// cluster server.
    pub fn not_in_force(&self) -> impl Iterator<Item = &Rule> {
        let places = self.not_in_force.iter();
        places.filter_map(|index| self.rules.rules().get(*index))
    }

    /// Names of the resources that rules name, those they look at among them, and of those that names without
    /// a slot share.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let named = self.named.keys().chain(&self.related);
        named.map(String::as_str).chain(self.overflows())
    }

    /// Whether rules name a resource, or look at it, or names without a slot share it.
    pub fn names(&self, resource: &str) -> bool {
        self.named.contains_key(resource)
            || self.related.contains(resource)
            || self.is_overflow(resource)
    }

    /// Whether rules of other resources look at this one.
    pub fn is_related(&self, resource: &str) -> bool {
        self.related.contains(resource)
    }

    /// The rules of a resource in the order in which they are asked: authority, hot parameter, flow,
    /// degrade; of a kind those that name it before those whose pattern matches; of flow rules those
    /// for this host alone before shared ones, and those for an origin before those for all.
    pub fn of_resource(&self, resource: &str) -> Vec<IndexedRule<'_>> {
        let named = self.named.get(resource).into_iter().flatten();
        let matching = self.matching(resource);
        let mut placed: Vec<_> = named
            .chain(&matching)
            .filter_map(|index| self.at(*index))
            .collect();
        if !placed
            .iter()
            .any(|placed| matches!(placed.rule.body, Body::Degrade(_)))
        {
            placed.extend(self.unguarded.iter().filter_map(|index| self.at(*index)));
        }
        placed.sort_by_key(|placed| (rank(&placed.rule.body), placed.index));
        placed
    }

    /// The system rules that requests are held against.
    pub fn system_rules(&self) -> impl Iterator<Item = IndexedRule<'_>> {
        let rules = self.rules.rules().iter().enumerate();
        rules
            .filter(|(_index, rule)| matches!(rule.body, Body::System(_)) && rule.rest().is_none())
            .map(|(index, rule)| IndexedRule { index, rule })
    }

    /// How often a hot-parameter rule stands on a resource: once for each that is named, and for each of these
    /// resources that the pattern of one matches.
    pub fn params_on(&self, resources: impl Iterator<Item: AsRef<str>>) -> usize {
        let is_param = |index: &usize| {
            let rule = self.rules.rules().get(*index);
            rule.is_some_and(|rule| matches!(rule.body, Body::Param(_)))
        };
        let count = |indexes: &[usize]| indexes.iter().filter(|index| is_param(index)).count();
        let named = self.named.values().map(|indexes| count(indexes)).sum();
        if !self.patterns.iter().any(is_param) {
            return named;
        }
        let by_pattern = resources.map(|name| count(&self.matching(name.as_ref())));
        by_pattern.fold(named, usize::saturating_add)
    }

    fn at(&self, index: usize) -> Option<IndexedRule<'_>> {
        let rule = self.rules.rules().get(index)?;
        Some(IndexedRule { index, rule })
    }

    /// Whether a rule of a resource counts a part of it apart.
    pub fn wants_part(&self, resource: &str, part: Part, name: &str) -> bool {
        let placed = self.of_resource(resource);
        let flows = placed.iter().filter_map(|placed| placed.rule.body.flow());
        let mut flows = flows.filter(|flow| match (&flow.strategy, part) {
            (Strategy::Direct, Part::Origin) => match &flow.limit_origin {
                LimitOrigin::Name(own) => own == name,
                LimitOrigin::Other => true,
                LimitOrigin::Default => false,
            },
            (Strategy::Chain(context), Part::Context) => context == name,
            (
                Strategy::Direct | Strategy::Relate(_) | Strategy::Chain(_) | Strategy::Nowhere,
                _,
            ) => false,
        });
        !name.is_empty() && flows.next().is_some()
    }

    /// The id of a rule.
    pub fn id(&self, rule: u32) -> Option<&str> {
        let index = usize::try_from(rule).ok()?;
        self.rules.rules().get(index).map(|rule| rule.id.as_str())
    }
}

impl IndexedRule<'_> {
    /// Its number in the set, as the gate names it.
    pub fn number(&self) -> u32 {
        u32::try_from(self.index).unwrap_or(u32::MAX)
    }
}

fn pattern(rule: &Rule) -> Option<&Pattern> {
    match &rule.body {
        Body::Flow(Flow { resource, .. }) | Body::Param(crate::rule::Param { resource, .. }) => {
            match resource {
                RuleResource::Pattern(pattern) => Some(pattern),
                RuleResource::Name(_) => None,
            }
        }
        Body::Authority(_) | Body::System(_) | Body::Degrade(_) => None,
    }
}

/// Where a rule stands among those of a resource: kind, then whether it matches by pattern, is shared
/// with other hosts, is for everybody.
fn rank(body: &Body) -> (u8, bool, bool, bool) {
    let of_pattern = |resource: &RuleResource| matches!(resource, RuleResource::Pattern(_));
    match body {
        Body::Authority(_) => (0, false, false, false),
        Body::System(_) => (1, false, false, false),
        Body::Param(param) => (2, of_pattern(&param.resource), false, false),
        Body::Flow(flow) => (
            3,
            of_pattern(&flow.resource),
            flow.cluster.is_some(),
            flow.limit_origin == LimitOrigin::Default,
        ),
        Body::Degrade(_) => (4, false, false, false),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rule::QuirksOption;
    use crate::rule_source::form::read;
    use crate::schema::source::Source;

    /// The limits of a rule file.
    pub(crate) fn rule_index(toml: &str) -> RuleIndex {
        let read = read("rules.toml".as_ref(), &Source::new("rules.toml", toml));
        assert_eq!(read.faults, []);
        let rules = RuleSet::build(read.rules, QuirksOption::None).unwrap();
        RuleIndex::of(Arc::new(rules))
    }

    fn ids(limits: &RuleIndex, resource: &str) -> Vec<String> {
        let placed = limits.of_resource(resource);
        placed.iter().map(|placed| placed.rule.id.clone()).collect()
    }

    #[test]
    fn rules_are_found_by_name_and_pattern_in_the_order_of_the_gate() {
        let limits = rule_index(
            r#"
            [[degrade]]
            id = "any-breaker"
            resource = "*"
            grade = "error_count"
            threshold = 5
            recovery_timeout = "10s"
            [[flow]]
            id = "pattern"
            resource = "a|b"
            regex = true
            count = 7
            [[flow]]
            id = "all"
            resource = "a"
            count = 9
            [[flow]]
            id = "one-origin"
            resource = "a"
            limit_origin = "shop"
            count = 2
            [[degrade]]
            id = "breaker"
            resource = "a"
            grade = "error_count"
            threshold = 5
            recovery_timeout = "10s"
            [[authority]]
            id = "callers"
            resource = "a"
            origins = ["shop"]
            "#,
        );
        let expected = ["callers", "one-origin", "all", "pattern", "breaker"];
        assert_eq!(ids(&limits, "a"), expected);
        assert_eq!(ids(&limits, "b"), ["pattern", "any-breaker"]);
        assert_eq!(ids(&limits, "ab"), ["any-breaker"]);
        assert_eq!(limits.id(1), Some("pattern"));
        assert_eq!(limits.id(6), None);
        assert!(limits.wants_part("a", Part::Origin, "shop"));
        assert!(!limits.wants_part("a", Part::Origin, "other-shop"));
        assert!(!limits.wants_part("b", Part::Origin, "shop"));
    }

    #[test]
    fn rules_that_hold_nothing_here_are_told() {
        let limits = rule_index(
            r#"
            [[flow]]
            id = "off"
            resource = "a"
            count = 5
            mode = "off"
            [[flow]]
            id = "shared"
            resource = "a"
            count = 5
            cluster = { flow_id = 7, fallback_to_local = false }
            "#,
        );
        assert_eq!(ids(&limits, "a"), Vec::<String>::new());
        let told: Vec<_> = limits.not_in_force().map(|rule| &rule.id).collect();
        assert_eq!(told, ["off", "shared"]);
    }
}
