//! The rules that an agent starts with. A fault in them takes nobody's protection away: the last good ones are in force,
//! or none, and adaptive limits in any case.

use std::collections::BTreeSet;

use super::reload;
use super::rule_feed::RuleFeed;
use super::rule_keep::RuleKeep;
use crate::host::tenants::{NamedTenant, Tenants};
use crate::rule::RuleSet;
use crate::rule_source::of_config::TenantSources;
use crate::rule_source::{RuleSource, SourceSet, SourceState, check};
use crate::schema::fault::Fault;
use crate::telemetry::reload::Instead;

/// What an agent starts with.
#[derive(Debug, Default)]
pub(super) struct FirstRules {
    /// Rules in force.
    pub(super) rules: usize,
    /// Every fault of the rules, each once.
    pub(super) faults: Vec<Fault>,
    /// What is in force in the place of those at fault, the worst of all tenants; `None` without a fault.
    pub(super) instead: Option<Instead>,
}

/// Puts the rules of every tenant in force.
pub(super) async fn begin(feed: &RuleFeed, tenants: &Tenants, keep: &RuleKeep) -> FirstRules {
    let mut begun = FirstRules::default();
    for named in tenants.iter() {
        let Some(own) = feed.sources().of_tenant(&named.name) else {
            continue;
        };
        let tenant = TenantRules { feed, own, named };
        let rules = match tenant.begin(keep).await {
            Ok(rules) => rules,
            Err(found) => {
                begun.faults.extend(found);
                let (rules, instead) = tenant.fall_back(keep).await;
                begun.instead = begun.instead.max(Some(instead));
                rules
            }
        };
        begun.rules = begun.rules.saturating_add(rules);
    }
    begun.faults = check::each_once(begun.faults);
    begun
}

/// A tenant and its sources.
struct TenantRules<'t> {
    feed: &'t RuleFeed,
    own: &'t TenantSources,
    named: &'t NamedTenant,
}

impl TenantRules<'_> {
    /// Puts in force what the sources give.
    async fn begin(&self, keep: &RuleKeep) -> Result<usize, Vec<Fault>> {
        let Self { feed, own, named } = self;
        let rules = own.build(own.of_all(feed.last()))?;
        let mut sources = feed.sources().sources_of(own);
        if sources.any(|source| source.state() == SourceState::Missing) {
            // A mount that is lost over a restart must not lift every limit either.
            let before = self.kept(keep).unwrap_or_default();
            feed.sources().check_successor(own, &rules, &before)?;
        }
        let count = self.put_in_force(rules).await?;
        keep.keep(&named.name, own.of_all(feed.last()));
        Ok(count)
    }

    /// Puts the last good rules in force, or none.
    async fn fall_back(&self, keep: &RuleKeep) -> (usize, Instead) {
        if let Some(rules) = self.kept(keep)
            && let Ok(count) = self.put_in_force(rules).await
            && count > 0
        {
            return (count, Instead::LastGood);
        }
        let nothing: [SourceSet; 0] = [];
        let none = self.own.build(nothing).unwrap_or_default();
        let count = self.put_in_force(none).await;
        (count.unwrap_or(0), Instead::Nothing)
    }

    async fn put_in_force(&self, rules: RuleSet) -> Result<usize, Vec<Fault>> {
        let origins = reload::origins(self.own, self.feed.last());
        reload::begin(rules, &self.named.tenant, &origins).await
    }

    /// The last good rules, as they were kept of each kind of source; `None` where nothing is.
    fn kept(&self, keep: &RuleKeep) -> Option<RuleSet> {
        let kinds: BTreeSet<&'static str> = self
            .feed
            .sources()
            .sources_of(self.own)
            .map(RuleSource::kind)
            .collect();
        let kept = kinds.into_iter().filter_map(|kind| {
            let documents = keep.load(&self.named.name, kind)?;
            Some(SourceSet::of_documents(kind, documents))
        });
        let kept: Vec<SourceSet> = kept.collect();
        if kept.is_empty() {
            return None;
        }
        // Another version of the agent may have taken what this one does not.
        let said = |faults: &Vec<Fault>| {
            for fault in faults {
                tracing::warn!(
                    event = "last_good_refused",
                    "the last good rules have a fault now: {fault}"
                );
            }
        };
        self.own.build(&kept).inspect_err(said).ok()
    }
}
