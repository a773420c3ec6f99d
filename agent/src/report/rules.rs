//! The shape of `GET /v1/rules`.

use serde::Serialize;

use super::warnings::WarningReport;
use crate::host::tenants::NamedTenant;
use crate::rule::expiry::ClockMoment;
use crate::rule::{Rest, Rule};

/// A rule, as `GET /v1/rules` tells it.
#[derive(Debug, Serialize)]
pub struct RuleReport {
    tenant: String,
    kind: &'static str,
    id: String,
    mode: &'static str,
    /// Name or pattern; null for a rule on a scope.
    resource: Option<String>,
    place: String,
    /// Whether requests are held against it.
    in_force: bool,
    /// Why not; null where they are.
    not_in_force: Option<&'static str>,
    /// Whether its `strained_count` is in force.
    strained: bool,
    /// How long until it ends by itself; null where it does not.
    ends_in_s: Option<f64>,
    /// What of it has no effect, or is odd otherwise.
    warnings: Vec<WarningReport>,
}

/// The rules of these tenants, in the order of their files.
pub fn rules(tenants: &[NamedTenant]) -> Vec<RuleReport> {
    tenants.iter().flat_map(rules_of).collect()
}

fn rules_of(named: &NamedTenant) -> Vec<RuleReport> {
    let limits = named.tenant.directory().rule_index();
    let set = limits.rules();
    let rules = set.rules().iter();
    rules
        .map(|rule| RuleReport {
            tenant: named.name.to_string(),
            kind: rule.body.kind().name(),
            id: rule.id.clone(),
            mode: rule.mode.name(),
            resource: rule.body.resource().map(str::to_owned),
            place: rule.place.to_string(),
            in_force: rule.rest().is_none(),
            not_in_force: rule.rest().map(Rest::text),
            strained: rule.usual.is_some(),
            ends_in_s: ends_in_s(rule),
            warnings: set
                .warnings_of(rule)
                .map(|fault| WarningReport::of(named, fault))
                .collect(),
        })
        .collect()
}

/// How long until a rule ends by itself.
pub(super) fn ends_in_s(rule: &Rule) -> Option<f64> {
    let now = ClockMoment::now();
    rule.end.map(|end| end.left(now).as_secs_f64())
}
