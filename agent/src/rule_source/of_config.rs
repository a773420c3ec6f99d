//! The sources that a configuration names, and what each tenant makes of them.

use std::borrow::Borrow;

use tidegate_abi::decision::Mode;

use super::form::FileRules;
use super::{DirectorySource, RuleSource, SetStream, SourceSet, SourceState};
use crate::config::{Config, DEFAULT_TENANT, LawKind, LawMode};
use crate::procfs::Roots;
use crate::rule::{Amount, Body, QuirksOption, Rule, RuleSet, System};
use crate::schema::fault::Fault;
use crate::signal::online_cpus;

/// Id of the rule with the marks of the configuration.
const LAW: &str = "law";

/// All sources, each once, and which of them each tenant has.
#[derive(Debug)]
pub struct Sources {
    sources: Vec<Box<dyn RuleSource>>,
    /// The default tenant first.
    tenants: Vec<TenantSources>,
}

/// What a tenant makes of its sources.
#[derive(Debug, Clone)]
pub struct TenantSources {
    name: String,
    /// Places of its sources in the list of all.
    of: Vec<usize>,
    quirks: QuirksOption,
    /// Marks of the configuration that are asked as the first system rule.
    law: Option<Box<(System, Mode)>>,
}

impl Sources {
    /// Those of a configuration: one directory for all tenants, and one for each tenant that has its own.
    pub fn of(config: &Config) -> Self {
        let mut all = Self {
            sources: Vec::new(),
            tenants: Vec::new(),
        };
        let law = law_marks(config).map(Box::new);
        let mut directories = Vec::new();
        let (dir, quirks) = (&config.rules.dir, config.rules.quirks);
        let others = config.tenants.iter().map(|tenant| {
            let own = tenant.rules_dir.as_ref().unwrap_or(dir);
            (tenant.name.as_str(), own, tenant.quirks.unwrap_or(quirks))
        });
        for (name, directory, quirks) in
            std::iter::once((DEFAULT_TENANT, dir, quirks)).chain(others)
        {
            let known = directories.iter().position(|known| *known == directory);
            let source = known.unwrap_or_else(|| {
                directories.push(directory);
                all.add(Box::new(DirectorySource::new(directory)))
            });
            all.tenants.push(TenantSources {
                name: name.to_owned(),
                of: vec![source],
                quirks,
                law: law.clone(),
            });
        }
        all
    }

    /// Adds a source; its place in the list.
    fn add(&mut self, source: Box<dyn RuleSource>) -> usize {
        self.sources.push(source);
        self.sources.len().saturating_sub(1)
    }

    /// All sources, each once.
    pub fn iter(&self) -> impl Iterator<Item = &dyn RuleSource> {
        self.sources.iter().map(|source| &**source)
    }

    /// Reads every source once, in their order.
    pub fn read(&self) -> Vec<SourceSet> {
        self.iter().map(RuleSource::read).collect()
    }

    /// Begins to follow every source, in their order.
    pub fn follow(&self) -> Vec<Box<dyn SetStream>> {
        self.iter().map(RuleSource::follow).collect()
    }

    /// The tenants with their sources, the default one first.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantSources> {
        self.tenants.iter()
    }

    /// What the tenant of that name makes of its sources; one that is not in the configuration, what the default one
    /// makes of them.
    pub fn of_tenant(&self, name: &str) -> Option<&TenantSources> {
        let named = self.tenants.iter().find(|tenant| tenant.name == name);
        named.or(self.tenants.first())
    }

    /// The sources of a tenant.
    pub fn sources_of<'s>(
        &'s self,
        tenant: &'s TenantSources,
    ) -> impl Iterator<Item = &'s dyn RuleSource> {
        let sources = tenant
            .of
            .iter()
            .filter_map(|place| self.sources.get(*place));
        sources.map(|source| &**source)
    }

    /// Refuses to go from the rules `now` in force to those that were just read, where a source is gone: a mount that
    /// is lost, or a move that is half done, must not lift every limit.
    ///
    /// # Errors
    /// A source is not there, no rule is left, and there were some.
    pub fn check_successor(
        &self,
        tenant: &TenantSources,
        next: &RuleSet,
        now: &RuleSet,
    ) -> Result<(), Vec<Fault>> {
        let lifts = |set: &RuleSet| !set.rules().iter().any(is_of_source);
        if lifts(now) || !lifts(next) {
            return Ok(());
        }
        let mut missing = self
            .sources_of(tenant)
            .filter(|source| source.state() == SourceState::Missing);
        let Some(source) = missing.next() else {
            return Ok(());
        };
        Err(vec![Fault::of_directory(
            &source.name(),
            "no such directory",
            "a directory of rule files",
            "an empty one lifts all rules",
        )])
    }
}

impl TenantSources {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sets of this tenant's sources out of those of all.
    pub fn of_all<'s>(&'s self, all: &'s [SourceSet]) -> impl Iterator<Item = &'s SourceSet> {
        self.of.iter().filter_map(|place| all.get(*place))
    }

    /// The rules of its sources as one set, with the marks of the configuration as its first system rule.
    ///
    /// # Errors
    /// Every fault.
    pub fn build(
        &self,
        sets: impl IntoIterator<Item: Borrow<SourceSet>>,
    ) -> Result<RuleSet, Vec<Fault>> {
        // Not the last: with quirks the last system rule says whether any is in force.
        let law = self.law.as_ref().map(|law| Rule::of_law(law, LAW));
        let mut all = FileRules {
            rules: law.into_iter().collect(),
            ..FileRules::default()
        };
        for set in sets {
            all.add(set.borrow().read.clone());
        }
        all.build(self.quirks)
    }

    /// The same without the marks of the configuration: what the sources say by themselves.
    ///
    /// # Errors
    /// Every fault.
    pub fn build_alone(
        &self,
        sets: impl IntoIterator<Item: Borrow<SourceSet>>,
    ) -> Result<RuleSet, Vec<Fault>> {
        let alone = Self {
            law: None,
            ..self.clone()
        };
        alone.build(sets)
    }
}

fn is_of_source(rule: &Rule) -> bool {
    let of_law = rule.id == LAW && matches!(rule.body, Body::System(_));
    !of_law && !rule.is_bulkhead()
}

/// With Sentinel's check in the place of the law: its marks on the host, which are asked event by event as
/// a system rule. The load mark is for each CPU here, and for all of those online in the rule.
fn law_marks(config: &Config) -> Option<(System, Mode)> {
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
    let mode = match config.law.mode {
        LawMode::Enforce => Mode::Enforce,
        LawMode::Observe => Mode::Observe,
    };
    (!marks.is_empty()).then_some((marks, mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TenantOptions;

    const NONE: [SourceSet; 0] = [];

    const RULE: &str = "[[flow]]\nresource = \"RESOURCE\"\ncount = 1\n";

    #[test]
    fn a_tenant_may_have_several_sources_which_are_one_set() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut sources = Sources::of(&Config::default());
        let mut own = TenantSources {
            of: Vec::new(),
            ..sources.tenants().next().unwrap().clone()
        };
        for (directory, resource) in directories.iter().zip(["a", "b"]) {
            let text = RULE.replace("RESOURCE", resource);
            // Files of one name, of which ids are made that are not given.
            std::fs::write(directory.path().join("rules.toml"), text).unwrap();
            own.of
                .push(sources.add(Box::new(DirectorySource::new(directory.path()))));
        }
        let sets = sources.read();
        let set = own.build(own.of_all(&sets)).unwrap();
        assert_eq!(set.rules().len(), 2);
        let ids: Vec<&str> = set.rules().iter().map(|rule| rule.id.as_str()).collect();
        let second = directories[1].path().join("rules.toml:flow[0]");
        assert_eq!(ids, ["rules.toml:flow[0]", second.to_str().unwrap()]);
        // A fault in one of them is a fault of the whole set.
        let bad = RULE.replace("count = 1", "count = -1");
        std::fs::write(directories[1].path().join("rules.toml"), bad).unwrap();
        let sets = sources.read();
        assert_eq!(own.build(own.of_all(&sets)).unwrap_err().len(), 1);
        // One that is gone lifts nothing, unless rules of another one are left.
        drop(directories);
        let none = own.build(NONE).unwrap();
        let gone = sources.check_successor(&own, &none, &set).unwrap_err();
        assert_eq!(gone.len(), 1, "{gone:?}");
        sources.check_successor(&own, &set, &set).unwrap();
    }

    #[test]
    fn tenants_with_one_directory_share_its_source() {
        let mut config = Config::default();
        let tenant = |name: &str, rules_dir: Option<&str>| TenantOptions {
            name: name.to_owned(),
            rules_dir: rules_dir.map(Into::into),
            ..TenantOptions::default()
        };
        config.tenants = vec![
            tenant("a", None),
            tenant("b", Some("/b")),
            tenant("c", Some("/b")),
        ];
        let sources = Sources::of(&config);
        assert_eq!(sources.iter().count(), 2);
        let of = |name| sources.of_tenant(name).unwrap().of.clone();
        assert_eq!(of("a"), of(DEFAULT_TENANT));
        assert_eq!(of("b"), of("c"));
        assert_ne!(of("a"), of("b"));
    }
}
