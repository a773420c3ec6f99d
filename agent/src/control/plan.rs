//! Which scopes have settings and names of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::Pattern;
use tidegate_limits::law::Settings;

/// Settings of every scope. Reloading the configuration makes a new one.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Settings of the host.
    pub host: Arc<Settings>,
    /// Settings of the groups that no declaration matches.
    pub others: Arc<Settings>,
    /// Declared groups; the first that matches counts.
    pub declared: Vec<Declared>,
}

/// A declared group.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Name in status, metrics and refusals.
    pub name: String,
    /// Path below the mount of the cpu controller; globs are allowed.
    pub cgroup: Pattern,
    /// Settings of each group that matches.
    pub settings: Arc<Settings>,
}

impl Plan {
    /// Name and settings of the group at this path.
    pub(super) fn of_group(&self, path: &Path) -> (Arc<str>, Arc<Settings>) {
        let found = self
            .declared
            .iter()
            .find(|declared| declared.cgroup.matches_path(path));
        match found {
            Some(declared) => (declared.name_for(path), Arc::clone(&declared.settings)),
            None => (path.to_string_lossy().into(), Arc::clone(&self.others)),
        }
    }

    /// The declared groups that name one path, to be watched without waiting for a service.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.declared
            .iter()
            .filter(|declared| !declared.is_glob())
            .map(|declared| PathBuf::from(declared.cgroup.as_str()))
    }
}

impl Declared {
    fn is_glob(&self) -> bool {
        self.cgroup.as_str().contains(['*', '?', '['])
    }

    /// The declared name; each group that a glob matches adds the last part of its path.
    fn name_for(&self, path: &Path) -> Arc<str> {
        match path.file_name() {
            Some(last) if self.is_glob() => {
                format!("{}/{}", self.name, last.to_string_lossy()).into()
            }
            _ => self.name.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_names_a_group_and_the_rest_have_their_path() {
        let declared = |name: &str, cgroup: &str| Declared {
            name: name.to_owned(),
            cgroup: Pattern::new(cgroup).unwrap(),
            settings: Arc::default(),
        };
        let plan = Plan {
            declared: vec![
                declared("orders", "/system.slice/orders.service"),
                declared("shop", "/system.slice/shop-*.service"),
            ],
            ..Plan::default()
        };
        let name = |path: &str| plan.of_group(Path::new(path)).0;
        assert_eq!(&*name("/system.slice/orders.service"), "orders");
        assert_eq!(
            &*name("/system.slice/shop-a.service"),
            "shop/shop-a.service"
        );
        assert_eq!(&*name("/user.slice"), "/user.slice");
        let paths: Vec<_> = plan.paths().collect();
        assert_eq!(paths, [Path::new("/system.slice/orders.service")]);
    }
}
