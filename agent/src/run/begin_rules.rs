//! The rules that an agent starts with. A fault in them takes nobody's protection away: the last good ones are in force,
//! or none, and adaptive limits in any case.

use super::reload;
use super::rule_keep::RuleKeep;
use crate::config::Config;
use crate::host::tenants::{Named, Tenants};
use crate::rule::RuleSet;
use crate::rule_source::last_good::Document;
use crate::rule_source::{DirectorySource, of_config};
use crate::schema::fault::Fault;
use crate::telemetry::reload::Instead;

/// What an agent starts with.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Rules in force.
    pub(super) rules: usize,
    /// Every fault of the rules, each once.
    pub(super) faults: Vec<Fault>,
    /// What is in force in the place of those at fault, the worst of all tenants; `None` without a fault.
    pub(super) instead: Option<Instead>,
}

/// Puts the rules of every tenant in force.
pub(super) async fn begin(config: &Config, tenants: &Tenants, keep: &RuleKeep) -> Begun {
    let mut begun = Begun::default();
    for named in tenants.iter() {
        let source = of_config::source_for(config, &named.name);
        let rules = match begin_one(&source, named, keep).await {
            Ok(rules) => rules,
            Err(found) => {
                begun.faults.extend(found);
                let (rules, instead) = fall_back(&source, named, keep).await;
                begun.instead = begun.instead.max(Some(instead));
                rules
            }
        };
        begun.rules = begun.rules.saturating_add(rules);
    }
    begun.faults = reload::each_once(begun.faults);
    begun
}

async fn begin_one(
    source: &DirectorySource,
    named: &Named,
    keep: &RuleKeep,
) -> Result<usize, Vec<Fault>> {
    let (rules, documents) = source.load_still().await?;
    if source.is_missing() {
        // A mount that is lost over a restart must not lift every limit either.
        let before = kept(source, named, keep).unwrap_or_default();
        source.check_successor(&rules, &before)?;
    }
    let count = reload::begin(source, rules, &named.tenant).await?;
    keep.keep(&named.name, documents);
    Ok(count)
}

/// Puts the last good rules of a tenant in force, or none.
async fn fall_back(source: &DirectorySource, named: &Named, keep: &RuleKeep) -> (usize, Instead) {
    if let Some(rules) = kept(source, named, keep)
        && let Ok(count) = reload::begin(source, rules, &named.tenant).await
        && count > 0
    {
        return (count, Instead::LastGood);
    }
    let none = source.of_documents(&[]).unwrap_or_default();
    let count = reload::begin(source, none, &named.tenant).await;
    (count.unwrap_or(0), Instead::Nothing)
}

fn kept(source: &DirectorySource, named: &Named, keep: &RuleKeep) -> Option<RuleSet> {
    let documents: Vec<Document> = keep.load(&named.name)?;
    let rules = source.of_documents(&documents);
    // Another version of the agent may have taken what this one does not.
    let said = |faults: &Vec<Fault>| {
        for fault in faults {
            tracing::warn!(
                event = "last_good_refused",
                "the last good rules have a fault now: {fault}"
            );
        }
    };
    rules.inspect_err(said).ok()
}
