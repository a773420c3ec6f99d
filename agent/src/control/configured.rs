//! Scopes that the configuration names, and whether there is a group for each.

use std::fmt;
use std::sync::Arc;

use crate::signal::{GroupMatches, NoGroup};

/// A scope of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredScope {
    /// Its name.
    pub name: Arc<str>,
    /// Path of its groups below the mount of the cpu controller, with `*` and `?`.
    pub cgroup: Arc<str>,
    /// How many groups it has, or why none.
    pub found: GroupMatches,
}

impl ConfiguredScope {
    /// Why it has no group; `None` where it has one.
    pub fn without_group(&self) -> Option<WithoutGroup> {
        let why = self.found.err()?;
        Some(WithoutGroup {
            cgroup: Arc::clone(&self.cgroup),
            why,
        })
    }

    /// How many groups it has.
    pub fn groups(&self) -> u32 {
        self.found.unwrap_or(0)
    }
}

/// Says that there is no group, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutGroup {
    /// Where there is none.
    pub cgroup: Arc<str>,
    /// Why.
    pub why: NoGroup,
}

impl WithoutGroup {
    /// Whether one group is meant: any number may fit a pattern, and none too.
    pub fn is_one_group(&self) -> bool {
        !self.cgroup.contains(['*', '?'])
    }
}

impl fmt::Display for WithoutGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no group at {}: {}", self.cgroup, self.why.remedy())
    }
}

/// CPUs that the configuration gives a scope, beside those that its group may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredCpus {
    /// As the configuration has it.
    pub cpus: f64,
    /// What its group may use, and by what it is held to that; `None` where that is not measured.
    pub allowed: Option<(f64, &'static str)>,
}

impl DeclaredCpus {
    /// Whether they are not those that its group may use, by more than a hundredth.
    pub fn conflicts(&self) -> bool {
        let differs = |(allowed, _by): (f64, &str)| (self.cpus - allowed).abs() > allowed / 100.0;
        self.allowed.is_some_and(differs)
    }
}

impl fmt::Display for DeclaredCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs are declared (cpus in its [[scope]])", self.cpus)?;
        let Some((allowed, by)) = self.allowed.filter(|_allowed| self.conflicts()) else {
            return Ok(());
        };
        let looks = if self.cpus > allowed { "less" } else { "more" };
        write!(
            f,
            ", {by} allows {allowed}: its share of the CPU looks {looks} than it is, unless `cpus` is taken out"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_s11_declared_cpus_that_are_not_those_of_the_quota_are_a_conflict() {
        let declared = |cpus, allowed| DeclaredCpus { cpus, allowed };
        let conflict = declared(2.0, Some((0.5, "its quota")));
        assert!(conflict.conflicts());
        assert_eq!(
            conflict.to_string(),
            "2 CPUs are declared (cpus in its [[scope]]), its quota allows 0.5: its share of the CPU looks less \
             than it is, unless `cpus` is taken out"
        );
        assert!(
            declared(0.25, Some((0.5, "its quota")))
                .to_string()
                .contains("looks more")
        );
        for agreed in [declared(0.5, Some((0.5, "its quota"))), declared(2.0, None)] {
            assert!(!agreed.conflicts(), "{agreed:?}");
            assert!(agreed.to_string().ends_with("[[scope]])"), "{agreed}");
        }
    }
}
