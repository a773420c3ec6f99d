//! Why a resource refuses: the rules that act on it, what each refused, and how each is now.
//!
//! The shape of `tidegate explain --json` and `GET /v1/explain`, which scripts rely on.

mod now;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Mode, RefusalKind};
use tidegate_segment::board::{BoardRule as Line, ResourceRecord, Slot};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::ledger::{LastRefused, NodeCounts};

use super::ListedWord;
use super::facts::HttpPermitsReport;
use super::rules::ends_in_s;
use super::status::{ResourceReport, ScopeReport, scopes};
use super::warnings::WarningReport;
use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::rule::{Body, Rule, RuleSet};
use crate::tenant::Tenant;
use crate::tenant::compile::plain::{Limit, Quantity};
use crate::tenant::directory::FoundSlot;
use crate::tenant::rule_counts::RuleCount;
use crate::tenant::rule_index::IndexedRule;

/// A resource, explained.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainReport {
    /// Its name.
    pub resource: String,
    /// The tenant that it is of.
    pub tenant: String,
    /// The resource that counts for it: itself, `__other__` where it got no slot of its own, null where
    /// nothing has been asked of it yet.
    pub counted_as: Option<String>,
    /// Totals of that resource.
    pub counts: Option<ResourceReport>,
    /// Its permits that were given over HTTP.
    pub http_permits: Option<HttpPermitsReport>,
    /// The rules that act on it, in the order in which they are asked.
    pub rules: Vec<RuleNowReport>,
    /// The scopes, the host first: any of them may refuse inbound work.
    pub scopes: Vec<ScopeReport>,
}

/// A rule, and what it did.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleNowReport {
    /// Its id.
    pub id: String,
    /// Word for its kind.
    pub kind: ListedWord,
    /// Word for its mode.
    pub mode: ListedWord,
    /// Where it stands.
    pub place: String,
    /// Requests that it refused.
    pub refused_total: u64,
    /// Requests that it would have refused if it did not only observe.
    pub observed_total: u64,
    /// The last of them; null before the first.
    pub last: Option<LastRefusalReport>,
    /// Why no request is held against it; null where requests are.
    pub not_in_force: Option<ListedWord>,
    /// Whether its `strained_count` is in force.
    pub strained: bool,
    /// How long until it ends by itself; null where it does not.
    pub ends_in_s: Option<f64>,
    /// What of it has no effect, or is odd otherwise.
    pub warnings: Vec<WarningReport>,
    /// How it is now.
    pub now: Value,
}

/// A refusal.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LastRefusalReport {
    /// The value measured.
    pub value: u32,
    /// The limit it was held against.
    pub limit: u32,
    /// How long ago, ms.
    pub ago_ms: u64,
}

/// Where the figures of a resource are.
struct ResourceView<'c> {
    tenant: &'c Tenant,
    resource: &'c str,
    slot: Slot,
    record: ResourceRecord,
    lines: Vec<Line>,
    counts: NodeCounts,
    /// What each rule did since it came: its place in the node may have served others before.
    by_rule: Vec<RuleCount>,
    now_ns: u64,
}

impl ExplainReport {
    /// Explains a resource of a tenant, without making a new one of it; `None` if nothing has been asked of
    /// it and no rule is for it.
    pub fn of(context: &AgentState, named: &NamedTenant, resource: &str) -> Option<Self> {
        let tenant = &*named.tenant;
        let found = tenant.directory().known(resource);
        let limits = tenant.directory().rule_index();
        let (counted_as, place) = match found {
            Some(FoundSlot { slot, overflow }) => {
                let name = if overflow {
                    limits.overflow(resource)
                } else {
                    resource
                };
                (Some(name.to_owned()), ResourceView::of(tenant, name, slot))
            }
            None => (None, None),
        };
        let acting = place.as_ref().map_or(resource, |place| place.resource);
        let placed = limits.of_resource(acting);
        let resting: Vec<_> = limits
            .not_in_force()
            .filter(|rule| rule.body.is_for(resource))
            .collect();
        if found.is_none() && placed.is_empty() && resting.is_empty() {
            return None;
        }
        let system = limits.system_rules();
        let rules = system.chain(placed).map(|placed| match &place {
            Some(place) => place.rule(&placed),
            None => RuleNowReport::idle(placed.rule),
        });
        let rules = rules.chain(resting.into_iter().map(RuleNowReport::idle));
        let mut rules: Vec<_> = rules.collect();
        for rule in &mut rules {
            rule.add_warnings(named, limits.rules());
        }
        Some(Self {
            resource: resource.to_owned(),
            tenant: named.name.to_string(),
            http_permits: place
                .as_ref()
                .map(|place| HttpPermitsReport::of(std::slice::from_ref(named), Some(place.slot))),
            rules,
            counts: place
                .as_ref()
                .map(|place| ResourceReport::of(named, &Arc::from(place.resource), place.slot)),
            counted_as,
            scopes: scopes(&context.control.snapshot()),
        })
    }
}

impl RuleNowReport {
    /// A rule on a resource of which nothing was asked.
    fn idle(rule: &Rule) -> Self {
        Self {
            id: rule.id.clone(),
            kind: rule.body.kind().name().into(),
            mode: rule.mode.name().into(),
            place: rule.place.to_string(),
            refused_total: 0,
            observed_total: 0,
            last: None,
            not_in_force: rule.rest().map(|rest| rest.text().into()),
            strained: rule.usual.is_some(),
            ends_in_s: ends_in_s(rule),
            warnings: Vec::new(),
            now: Value::Null,
        }
    }

    fn add_warnings(&mut self, named: &NamedTenant, set: &RuleSet) {
        let own = set
            .rules()
            .iter()
            .find(|rule| rule.id == self.id && rule.body.kind().name() == self.kind);
        let warnings = own.into_iter().flat_map(|rule| set.warnings_of(rule));
        self.warnings
            .extend(warnings.map(|fault| WarningReport::of(named, fault)));
    }
}

impl<'c> ResourceView<'c> {
    fn of(tenant: &'c Tenant, resource: &'c str, slot: Slot) -> Option<Self> {
        Some(Self {
            tenant,
            resource,
            slot,
            record: tenant.board().record(slot.index)?,
            lines: tenant.lines(slot),
            counts: tenant.seats().node_counts(slot),
            by_rule: tenant.rule_counts(),
            now_ns: monotonic_ns(),
        })
    }

    fn rule(&self, placed: &IndexedRule<'_>) -> RuleNowReport {
        let number = placed.number();
        let line = self.lines.iter().find(|line| line.number == number);
        let (refused, last) = match line {
            Some(line) => self.of_line(line),
            None => self.of_own_time(placed, self.of_node(placed)),
        };
        let observes = placed.rule.mode == Mode::Observe;
        RuleNowReport {
            refused_total: if observes { 0 } else { refused },
            observed_total: if observes { refused } else { 0 },
            last: last.map(|last| self.last(last)),
            now: self.now(placed, line),
            ..RuleNowReport::idle(placed.rule)
        }
    }

    /// The figures of a node without what was counted there for rules before this one. A rule on a pattern counts over
    /// many resources and keeps those of the node.
    fn of_own_time(
        &self,
        placed: &IndexedRule<'_>,
        (in_node, last): (u64, Option<LastRefused>),
    ) -> (u64, Option<LastRefused>) {
        let Rule { id, body, mode, .. } = placed.rule;
        let is_of_rule = |count: &&RuleCount| {
            let (kind, of) = &count.key;
            *kind == body.kind() && of == id && count.resource.as_deref() == Some(self.resource)
        };
        let Some(count) = self.by_rule.iter().find(is_of_rule) else {
            return (in_node, last);
        };
        let own = match mode {
            Mode::Observe => count.counts.observed,
            Mode::Enforce | Mode::Off => count.counts.refused,
        };
        (own, last.filter(|_last| own > 0))
    }

    fn of_line(&self, line: &Line) -> (u64, Option<LastRefused>) {
        let Some(state) = self.tenant.ledger().state(line.state) else {
            return (0, None);
        };
        let (refused, observed) = state.refused_and_observed();
        let count = if line.mode == Mode::Observe {
            observed
        } else {
            refused
        };
        (count, state.last_refused())
    }

    /// A plain rule, or a system rule: its figures are with the node. Of several plain rules the one with
    /// the least limit is in force, and of system rules the first stands for all.
    fn of_node(&self, placed: &IndexedRule<'_>) -> (u64, Option<LastRefused>) {
        let number = placed.number();
        if let Body::System(_) = placed.rule.body {
            return self.of_inbound(placed);
        }
        let Some(node) = self.tenant.ledger().node(self.slot.index) else {
            return (0, None);
        };
        let (places_refused, last) = node.refused();
        let (observed_qps, observed_places) = node.observed();
        let quantity = Limit::of(placed.rule, number).map(|limit| limit.quantity);
        let record = &self.record;
        let holds = |need: u32, rule: u32| record.needs.any(need) && rule == number;
        match quantity {
            Some(Quantity::Qps) if holds(Needs::QPS, record.qps_rule) => {
                let flow = self.counts.refused_by(RefusalKind::Flow);
                (flow.saturating_sub(places_refused), node.last_full())
            }
            Some(Quantity::Concurrency) if holds(Needs::CONCURRENCY, record.concurrency_rule) => {
                (places_refused, last)
            }
            Some(Quantity::Qps) if holds(Needs::OBSERVED_QPS, record.observed_qps_rule) => {
                (observed_qps.into(), node.last_observed())
            }
            Some(Quantity::Concurrency)
                if holds(
                    Needs::OBSERVED_CONCURRENCY,
                    record.observed_concurrency_rule,
                ) =>
            {
                (observed_places.into(), node.last_observed())
            }
            Some(_) | None => (0, None),
        }
    }

    /// System rules look at all inbound work, whatever its resource.
    fn of_inbound(&self, placed: &IndexedRule<'_>) -> (u64, Option<LastRefused>) {
        let system = self.tenant.directory().rule_index().system();
        let number = Some(placed.number());
        let node = self.tenant.ledger().node(Slot::INBOUND.index);
        node.map_or((0, None), |node| {
            if system.enforced.map(|rules| rules.rule) == number {
                node.refused()
            } else if system.observed.map(|rules| rules.rule) == number {
                (node.observed().0.into(), node.last_observed())
            } else {
                (0, None)
            }
        })
    }

    fn last(&self, last: LastRefused) -> LastRefusalReport {
        let ago_ns = self.now_ns.saturating_sub(last.at_ns);
        LastRefusalReport {
            value: last.value,
            limit: last.limit,
            ago_ms: ago_ns / 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests;
