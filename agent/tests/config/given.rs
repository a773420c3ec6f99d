//! Short ways to rules.

use std::path::Path;
use std::time::Duration;

use tidegate_agent::rule::flow::{Behavior, Grade, LimitOrigin, Strategy};
use tidegate_agent::rule::{Amount, Body, Flow, Rule, RuleResource};
use tidegate_agent::rule_source::form;
use tidegate_agent::schema::source::Source;

/// The rules of a file without a fault.
pub(crate) fn rules(name: &str, text: &str) -> Vec<Rule> {
    let read = form::read(Path::new(name), &Source::new(name, text));
    assert_eq!(read.faults, []);
    read.rules
}

/// What they say.
pub(crate) fn bodies(name: &str, text: &str) -> Vec<Body> {
    let rules = rules(name, text);
    rules.into_iter().map(|rule| rule.body).collect()
}

pub(crate) fn amount(number: f64) -> Amount {
    Amount::new(number).unwrap()
}

pub(crate) fn name(text: &str) -> RuleResource {
    RuleResource::Name(text.to_owned())
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn plain_flow(resource: &str, count: f64) -> Flow {
    Flow {
        resource: name(resource),
        limit_origin: LimitOrigin::Default,
        count: amount(count),
        strained: None,
        grade: Grade::Qps {
            window: SECOND,
            strict: false,
            behavior: Behavior::Reject,
        },
        strategy: Strategy::Direct,
        cluster: None,
    }
}
