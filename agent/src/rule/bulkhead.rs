//! Rules that the agent makes itself: concurrency limits of resources that a bulkhead holds.
//!
//! They are ordinary flow rules, so each door, `explain` and the metrics know them. A reload keeps them.

use tidegate_abi::decision::Mode;

use super::flow::{Flow, Grade, LimitOrigin, Strategy};
use super::resource::RuleResource;
use super::{Amount, Body, Rule, RuleSet};
use crate::schema::fault::{InFile, Spot};

/// Path of such a rule, and what its id begins with.
const BULKHEAD: &str = "bulkhead";

/// A resource that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkheadRule {
    /// Its name.
    pub resource: String,
    /// Requests that it may have in flight.
    pub limit: u32,
    /// Whether it is enforced.
    pub mode: Mode,
}

impl BulkheadRule {
    fn rule(&self) -> Rule {
        let place = InFile::whole("the agent");
        let spot = |name| Spot {
            name,
            place: place.clone(),
        };
        Rule {
            id: format!("{BULKHEAD}-{}", self.resource),
            mode: self.mode,
            body: Body::Flow(Flow {
                resource: RuleResource::Name(self.resource.clone()),
                limit_origin: LimitOrigin::Default,
                count: Amount::new(f64::from(self.limit)).unwrap_or(Amount::ZERO),
                strained: None,
                grade: Grade::Concurrency,
                strategy: Strategy::Direct,
                cluster: None,
            }),
            end: None,
            usual: None,
            id_spot: spot("id"),
            count_spot: spot("count"),
            reference_spot: spot("reference"),
            path: BULKHEAD.to_owned(),
            place,
            of_sentinel: false,
        }
    }
}

impl Rule {
    /// Whether the agent made it to hold a resource.
    pub fn is_bulkhead(&self) -> bool {
        self.path == BULKHEAD && matches!(self.body, Body::Flow(_))
    }
}

impl RuleSet {
    /// The same set with these resources held and no others.
    #[must_use]
    pub fn with_bulkheads(&self, held: &[BulkheadRule]) -> Self {
        let mut next = self.clone();
        next.replace(Rule::is_bulkhead, held.iter().map(BulkheadRule::rule));
        next
    }

    /// Takes over those of the set before.
    pub(super) fn keep_bulkheads(&mut self, before: &Self) {
        let held = before.rules().iter().filter(|rule| rule.is_bulkhead());
        self.replace(Rule::is_bulkhead, held.cloned());
    }

    /// The resources that are held, with their limits.
    pub fn bulkheads(&self) -> impl Iterator<Item = (&str, u32)> {
        let held = self.rules().iter().filter(|rule| rule.is_bulkhead());
        held.filter_map(|rule| {
            let flow = rule.body.flow()?;
            let RuleResource::Name(name) = &flow.resource else {
                return None;
            };
            Some((name.as_str(), flow.count.whole()))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rule::QuirksOption;
    use crate::rule::expiry::ClockMoment;
    use crate::rule_source::form::read;
    use crate::schema::source::Source;

    pub(in crate::rule) fn set(text: &str) -> RuleSet {
        let read = read("a.toml".as_ref(), &Source::new("a.toml", text));
        assert_eq!(read.faults, []);
        RuleSet::build(read.rules, QuirksOption::None).unwrap()
    }

    #[test]
    fn field_l12_a_reload_keeps_the_bulkheads_and_their_end_leaves_the_rules() {
        let rules = set("[[flow]]\nresource = \"a\"\ncount = 9\n");
        let slow = BulkheadRule {
            resource: "slow".to_owned(),
            limit: 16,
            mode: Mode::Enforce,
        };
        let held = rules.with_bulkheads(std::slice::from_ref(&slow));
        assert_eq!(held.bulkheads().collect::<Vec<_>>(), [("slow", 16)]);
        let mut reloaded = set("[[flow]]\nresource = \"b\"\ncount = 1\n");
        reloaded.begin(&held, ClockMoment::now());
        assert_eq!(reloaded.bulkheads().collect::<Vec<_>>(), [("slow", 16)]);
        assert_eq!(held.with_bulkheads(&[]), rules);
    }
}
