//! The sources that a configuration names.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::DirectorySource;
use crate::config::{Config, LawKind, Tenant};
use crate::procfs::Roots;
use crate::rule::{Amount, System};
use crate::signal::online_cpus;

/// The rule directories: that of all first, then those of tenants that have their own.
pub fn sources(config: &Config) -> Vec<DirectorySource> {
    let own = config
        .tenants
        .iter()
        .filter(|tenant| tenant.rules_dir.is_some() || tenant.quirks.is_some());
    std::iter::once(of_all(config))
        .chain(own.map(|tenant| of_tenant(config, tenant)))
        .collect()
}

/// The directories of all tenants' rules, each once.
pub fn directories(config: &Config) -> BTreeSet<PathBuf> {
    let sources = sources(config).into_iter();
    sources
        .map(|source| source.directory().to_owned())
        .collect()
}

/// The rule directory of the tenant of that name; that of all where no such tenant has its own.
pub fn source_for(config: &Config, name: &str) -> DirectorySource {
    let tenant = config.tenants.iter().find(|tenant| tenant.name == name);
    tenant
        .map_or_else(|| of_all(config), |tenant| of_tenant(config, tenant))
        .with_law(law_marks(config))
}

fn of_all(config: &Config) -> DirectorySource {
    DirectorySource::new(&config.rules.dir, config.rules.quirks)
}

fn of_tenant(config: &Config, tenant: &Tenant) -> DirectorySource {
    let directory = tenant.rules_dir.as_ref().unwrap_or(&config.rules.dir);
    DirectorySource::new(directory, tenant.quirks.unwrap_or(config.rules.quirks))
}

/// With Sentinel's check in the place of the law: its marks on the host, which are asked event by event as
/// a system rule. The load mark is for each CPU here, and for all of those online in the rule.
fn law_marks(config: &Config) -> Option<System> {
    if config.law.kind != LawKind::Sentinel {
        return None;
    }
    let load =
        online_cpus(&Roots::default()).map(|cpus| config.load.enter_per_cpu * f64::from(cpus));
    let marks = System {
        load: load.and_then(Amount::new).filter(|_| config.load.enabled),
        cpu: Amount::new(config.cpu.enter).filter(|_| config.cpu.enabled),
        ..System::default()
    };
    (!marks.is_empty()).then_some(marks)
}
