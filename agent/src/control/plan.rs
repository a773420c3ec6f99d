//! Which scopes have settings and names of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_abi::board::name_hash;
use tidegate_limits::law::LawSettings;

use super::configured::ConfiguredScope;
use crate::config::{Config, ServiceOptions};
use crate::procfs::{GroupPattern, readable};
use crate::signal::{GroupMatches, PatternKey};

/// Settings of every scope. Reloading the configuration makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Settings of the host.
    pub host: Arc<LawSettings>,
    /// Settings of the groups that no declaration matches.
    pub others: Arc<LawSettings>,
    /// Declared groups; the first that matches counts.
    pub declared: Vec<DeclaredGroup>,
    /// Weights of services.
    pub weights: Weights,
}

/// Weights of services by the hash of their name; 1 where none is declared.
#[derive(Debug, Clone, Default)]
pub struct Weights(Vec<(u64, f64)>);

impl Weights {
    /// Those of declared services.
    pub fn declared(services: &[ServiceOptions]) -> Self {
        let services = services.iter();
        let hashed = services.map(|service| (name_hash(service.name.as_bytes()), service.weight));
        Self(hashed.collect())
    }

    /// Weight of the service whose name has this hash.
    pub fn of(&self, name: u64) -> f64 {
        let found = self.0.iter().find(|(hash, _weight)| *hash == name);
        found.map_or(1.0, |(_hash, weight)| *weight)
    }

    /// Weight of the service with this name.
    pub fn of_name(&self, name: &str) -> f64 {
        self.of(name_hash(name.as_bytes()))
    }
}

/// A declared group.
#[derive(Debug, Clone)]
pub struct DeclaredGroup {
    /// Name in status, metrics and refusals.
    pub name: Arc<str>,
    /// Path below the mount of the cpu controller; `*` and `?` match within a name.
    pub cgroup: Arc<str>,
    /// CPUs of each group that matches; `None` = as measured.
    pub cpus: Option<f64>,
    /// Settings of each group that matches.
    pub settings: Arc<LawSettings>,
}

/// What a group is called and how it is judged.
#[derive(Debug)]
pub(super) struct Terms {
    pub name: Arc<str>,
    /// CPUs that are declared for it; `None` = as measured.
    pub cpus: Option<f64>,
    pub settings: Arc<LawSettings>,
}

impl Plan {
    /// The settings of every scope as the configuration has them.
    pub fn of(config: &Config) -> Self {
        let declared = config.scopes.iter().map(|scope| DeclaredGroup {
            name: scope.name.as_str().into(),
            cgroup: scope.cgroup.as_str().into(),
            cpus: scope.cpus,
            settings: Arc::new(scope.law_settings(config.tick)),
        });
        Self {
            host: Arc::new(config.host_settings()),
            others: Arc::new(config.scope_settings()),
            declared: declared.collect(),
            weights: Weights::declared(&config.services),
        }
    }
}

impl Plan {
    /// Settings of the group with this path, of the host for `None`.
    pub fn settings_of(&self, group: Option<&Path>) -> Arc<LawSettings> {
        let Some(path) = group else {
            return Arc::clone(&self.host);
        };
        let fits = |declared: &&DeclaredGroup| {
            GroupPattern::new(&declared.cgroup).is_ok_and(|pattern| pattern.fits(path))
        };
        let declared = self.declared.iter().find(fits);
        declared.map_or_else(|| Arc::clone(&self.others), |one| Arc::clone(&one.settings))
    }
}

impl DeclaredGroup {
    /// The declared name; each group that a pattern matches adds its path from where the pattern begins to leave room.
    fn name_for(&self, path: &Path) -> Arc<str> {
        let is_fixed = |part: &&str| !part.contains(['*', '?']);
        let parts = self.cgroup.split('/').filter(|part| !part.is_empty());
        let fixed = parts.take_while(is_fixed).count();
        let below = path.strip_prefix("/").unwrap_or(path);
        let rest: PathBuf = below.iter().skip(fixed).collect();
        if rest.as_os_str().is_empty() {
            return Arc::clone(&self.name);
        }
        format!("{}/{}", self.name, readable(&rest)).into()
    }
}

/// A plan in force: which declaration each pattern of the sampler stands for.
#[derive(Debug, Default)]
pub(super) struct Planned {
    plan: Plan,
    /// Every pattern ever given to the sampler; it keeps them all.
    known: Vec<(Arc<str>, PatternKey)>,
}

impl Planned {
    /// Puts a plan in force. `watch` gives a new pattern to the sampler. What is no pattern is left
    /// out: the configuration has refused it.
    pub(super) fn set(&mut self, plan: Plan, mut watch: impl FnMut(GroupPattern) -> PatternKey) {
        for declared in &plan.declared {
            let known = self
                .known
                .iter()
                .any(|(text, _key)| *text == declared.cgroup);
            if let (false, Ok(pattern)) = (known, GroupPattern::new(&declared.cgroup)) {
                let key = watch(pattern);
                self.known.push((Arc::clone(&declared.cgroup), key));
            }
        }
        self.plan = plan;
    }

    /// The declared groups as the last search of the sampler found them; `None` for one that was not searched for yet.
    pub(super) fn configured(
        &self,
        found: impl Fn(PatternKey) -> Option<GroupMatches>,
    ) -> impl Iterator<Item = Option<ConfiguredScope>> {
        self.plan.declared.iter().map(move |declared| {
            let key = self.key_of(declared)?;
            Some(ConfiguredScope {
                name: Arc::clone(&declared.name),
                cgroup: Arc::clone(&declared.cgroup),
                found: found(key)?,
            })
        })
    }

    fn key_of(&self, declared: &DeclaredGroup) -> Option<PatternKey> {
        let mut known = self.known.iter();
        let known = known.find(|(text, _key)| *text == declared.cgroup);
        known.map(|(_text, key)| *key)
    }

    /// Weights of services.
    pub(super) fn weights(&self) -> &Weights {
        &self.plan.weights
    }

    /// Settings of the host.
    pub(super) fn host(&self) -> Arc<LawSettings> {
        Arc::clone(&self.plan.host)
    }

    /// The terms of a group that fits this pattern.
    pub(super) fn of_group(&self, path: &Path, pattern: Option<PatternKey>) -> Terms {
        let text = self
            .known
            .iter()
            .find(|(_text, key)| Some(*key) == pattern)
            .map(|(text, _key)| text);
        let declared = &self.plan.declared;
        match declared.iter().find(|one| Some(&one.cgroup) == text) {
            Some(declared) => Terms {
                name: declared.name_for(path),
                cpus: declared.cpus,
                settings: Arc::clone(&declared.settings),
            },
            None => Terms {
                name: readable(path).into(),
                cpus: None,
                settings: Arc::clone(&self.plan.others),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_limits::bulkhead;
    use tidegate_limits::law::settings::CpuUse;

    use super::*;
    use crate::config::{CpuOptions, HysteresisOptions, LawOptions, ScopeOptions, ThreadsOptions};

    #[test]
    fn the_default_configuration_is_the_default_law_and_groups_have_no_load_and_their_own_cpu() {
        let plan = Plan::of(&Config::default());
        let mut group = LawSettings {
            bulkhead: Some(bulkhead::BulkheadSettings::default()),
            ..LawSettings::default()
        };
        assert_eq!(*plan.host, group);
        group.marks.load = None;
        group.marks.cpu_use = CpuUse::Own;
        assert_eq!(*plan.others, group);
        assert!(plan.declared.is_empty());
    }

    #[test]
    fn a_declared_pattern_names_its_groups_and_the_rest_have_their_path() {
        let mut config = Config::default();
        let mut scope = ScopeOptions::over(
            CpuOptions::default(),
            HysteresisOptions::default(),
            ThreadsOptions::default(),
            LawOptions::default(),
        );
        scope.name = "shop".to_owned();
        scope.cgroup = "/shop-*".to_owned();
        scope.cpu.enter = 0.5;
        scope.cpus = Some(1.5);
        config.scopes = vec![scope];
        let mut planned = Planned::default();
        let key = PatternKey(3);
        planned.set(Plan::of(&config), |_pattern| key);
        let shop = planned.of_group("/shop-a".as_ref(), Some(key));
        assert_eq!((&*shop.name, shop.cpus), ("shop/shop-a", Some(1.5)));
        assert_eq!(shop.settings.marks.cpu.map(|marks| marks.enter), Some(0.5));
        let below = |cgroup: &str, path: &str| {
            let declared = DeclaredGroup {
                cgroup: cgroup.into(),
                ..planned.plan.declared[0].clone()
            };
            declared.name_for(path.as_ref()).to_string()
        };
        assert_eq!(below("/pods/*/app", "/pods/one/app"), "shop/one/app");
        assert_eq!(below("/pods/one/app", "/pods/one/app"), "shop");
        let other = planned.of_group("/other".as_ref(), None);
        assert_eq!((&*other.name, other.cpus), ("/other", None));
        planned.set(Plan::default(), |_pattern| key);
        assert_eq!(
            &*planned.of_group("/shop-a".as_ref(), Some(key)).name,
            "/shop-a"
        );
    }
}
