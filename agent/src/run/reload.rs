//! Reads configuration and rules again; what is at fault leaves the last good ones in force.

use std::sync::Arc;
use std::time::Duration;

use tidegate_segment::board::RuleFault;
use tidegate_segment::clock::monotonic_ns;

use super::rule_feed::RuleFeed;
use super::rule_keep::RuleKeep;
use super::told;
use crate::config::{Config, ConfigRequest, LoadedConfig};
use crate::control::{Handle, Plan};
use crate::host::tenants::{NamedTenant, Tenants};
use crate::rule::RuleSet;
use crate::rule::bulkhead::BulkheadRule;
use crate::rule::expiry::ClockMoment;
use crate::rule_source::of_config::TenantSources;
use crate::rule_source::{SourceSet, check};
use crate::schema::fault::Fault;
use crate::schema::source::Source;
use crate::tenant::Tenant;
use crate::tenant::directory::{PublishFault, PublishResult, TooSoon};
use crate::tenant::rule_index::RuleIndex;

/// Puts in force what the sources of each tenant gave last, as one set. Returns how many rules there are.
///
/// # Errors
/// Every fault of the rules, each once. The rules before stay in force for the tenants whose rules are
/// at fault, and for them alone.
pub(super) async fn rules(
    feed: &RuleFeed,
    tenants: &Tenants,
    keep: &RuleKeep,
) -> Result<usize, Vec<Fault>> {
    let (mut count, mut faults) = (0_usize, Vec::new());
    for named in tenants.iter() {
        let Some(own) = feed.sources().of_tenant(&named.name) else {
            continue;
        };
        match Box::pin(rules_of(feed, own, named, keep)).await {
            Ok(rules) => count = count.saturating_add(rules),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() {
        Ok(count)
    } else {
        Err(check::each_once(faults))
    }
}

async fn rules_of(
    feed: &RuleFeed,
    own: &TenantSources,
    named: &NamedTenant,
    keep: &RuleKeep,
) -> Result<usize, Vec<Fault>> {
    let rules = own.build(own.of_all(feed.last()))?;
    let index = named.tenant.directory().rule_index();
    feed.sources().check_successor(own, &rules, index.rules())?;
    let old = Arc::clone(index.rules());
    let count = begin(rules, &named.tenant, &origins(own, feed.last())).await?;
    let index = named.tenant.directory().rule_index();
    told::rules(&named.name, index.rules(), &old);
    keep.keep(&named.name, own.of_all(feed.last()));
    Ok(count)
}

/// The names of a tenant's sources, for messages.
pub(super) fn origins(own: &TenantSources, sets: &[SourceSet]) -> String {
    let names: Vec<&str> = own.of_all(sets).map(|set| set.origin.as_str()).collect();
    names.join(", ")
}

/// Puts rules in force that were read from sources, and says what is odd about them. Returns how many there are.
///
/// # Errors
/// The pages have no room for them; the rules before stay in force.
pub(super) async fn begin(
    mut rules: RuleSet,
    tenant: &Tenant,
    origins: &str,
) -> Result<usize, Vec<Fault>> {
    let before = Arc::clone(tenant.directory().rule_index().rules());
    // What was said of the same files is not said again.
    for warning in rules.warnings() {
        if !before.warnings().contains(warning) {
            tracing::warn!(event = "rule_warning", "{warning}");
        }
    }
    rules.begin(&before, ClockMoment::now());
    let rules = Arc::new(rules);
    put_in_force(&rules, tenant, origins).await?;
    Ok(rules.rules().len())
}

/// Takes rules out of force whose time is over. How many there were.
///
/// # Errors
/// As for [`rules`]; what cannot be published now is tried again.
pub(super) async fn end_rules(tenants: &Tenants) -> Result<usize, Vec<Fault>> {
    let mut ended = 0_usize;
    for named in tenants.iter() {
        let tenant = &named.tenant;
        let before = Arc::clone(tenant.directory().rule_index().rules());
        let Some(next) = before.ended_by(ClockMoment::now()) else {
            continue;
        };
        for (rule, old) in next.rules().iter().zip(before.rules()) {
            if rule.end != old.end {
                tracing::info!(
                    event = "rule_ended",
                    rule = rule.id,
                    tenant = &*named.name,
                    "a rule has expired"
                );
                ended = ended.saturating_add(1);
            }
        }
        Box::pin(put_in_force(&Arc::new(next), tenant, "rules")).await?;
    }
    Ok(ended)
}

/// Puts the counts in force that rules have for a strained machine, or the usual ones. How many tenants have such rules.
///
/// # Errors
/// As for [`rules`].
pub(super) async fn strain_rules(tenants: &Tenants, strained: bool) -> Result<usize, Vec<Fault>> {
    let mut changed = 0_usize;
    for named in tenants.iter() {
        let tenant = &named.tenant;
        let before = Arc::clone(tenant.directory().rule_index().rules());
        if let Some(next) = before.strained(strained) {
            Box::pin(put_in_force(&Arc::new(next), tenant, "rules")).await?;
            changed = changed.saturating_add(1);
        }
    }
    Ok(changed)
}

/// Holds these resources of a tenant, and no others.
///
/// # Errors
/// As for [`rules`].
pub(super) async fn hold(tenant: &Tenant, held: &[BulkheadRule]) -> Result<(), Vec<Fault>> {
    let next = tenant.directory().rule_index().rules().with_bulkheads(held);
    put_in_force(&Arc::new(next), tenant, "rules").await
}

/// How long until the next rule ends.
pub(super) fn next_end(tenants: &Tenants) -> Option<Duration> {
    let ends = tenants.iter().filter_map(|named| {
        named
            .tenant
            .directory()
            .rule_index()
            .rules()
            .next_end(ClockMoment::now())
    });
    ends.min()
}

async fn put_in_force(
    rules: &Arc<RuleSet>,
    tenant: &Tenant,
    directory: &str,
) -> Result<(), Vec<Fault>> {
    let published = publish(rules, tenant).await.map_err(|fault| {
        let allowed = "rules for which the pages have room";
        vec![Fault::of_directory(
            directory,
            fault.to_string(),
            allowed,
            "",
        )]
    })?;
    for (resource, fault) in published.unplaced {
        tracing::error!(event = "rule_without_slot", resource, %fault, "a resource gets no slot: its rules are not in force");
    }
    Ok(())
}

/// Two sets must not follow each other faster than readers can read; the second waits a little.
async fn publish(rules: &Arc<RuleSet>, tenant: &Tenant) -> Result<PublishResult, RuleFault> {
    loop {
        let limits = RuleIndex::of(Arc::clone(rules));
        match tenant.publish(limits, monotonic_ns()) {
            Ok(published) => return Ok(published),
            Err(PublishFault::NoRoom(fault)) => return Err(fault),
            Err(PublishFault::TooSoon(TooSoon { wait_ns })) => {
                tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
            }
        }
    }
}

/// Reads the configuration again and puts in force what can change while the agent runs.
///
/// Returns what is odd about it, and its files.
///
/// # Errors
/// Every fault of the file; the configuration before stays in force.
pub(super) fn config(
    given: &ConfigRequest,
    now: &mut Box<Config>,
    handle: &Handle,
) -> Result<(Vec<Fault>, Vec<Source>), Vec<Fault>> {
    let LoadedConfig {
        config: next,
        warnings,
        files,
    } = given.load()?;
    // It would hinder the next start alone, which nobody watches.
    if let Some(fault) = check::of_machine(&next, given.file.as_deref()) {
        return Err(vec![fault]);
    }
    for warning in &warnings {
        tracing::warn!(event = "rule_warning", "{warning}");
    }
    for option in fixed_options(now, &next) {
        tracing::warn!(
            event = "setting_needs_restart",
            option,
            "changed; takes effect at the next start of the agent"
        );
    }
    if let Err(overrun) = handle.set_plan(Plan::of(&next)) {
        tracing::warn!(event = "settings_refused", %overrun, "the settings of the scopes stay as they are");
    }
    *now = next;
    Ok((warnings, files))
}

/// Sections that differ and are fixed for the life of the process.
fn fixed_options(now: &Config, next: &Config) -> Vec<&'static str> {
    [
        ("tick", now.tick == next.tick),
        ("socket", now.socket == next.socket),
        ("http", now.http == next.http),
        ("agent_loss", now.agent_loss == next.agent_loss),
        ("signals", now.signals == next.signals),
        ("pages", now.pages == next.pages),
        ("ebpf", now.ebpf == next.ebpf),
        ("recording", now.recording == next.recording),
        ("tenant", now.tenants == next.tenants),
    ]
    .into_iter()
    .filter_map(|(option, same)| (!same).then_some(option))
    .collect()
}
