//! Scopes that the configuration names, and whether there is a group for each.

use std::fmt;
use std::sync::Arc;

use super::mailbox::Mailbox;
use super::request::Event;
use crate::signal::{Found, NoGroup};

/// A scope is missed aloud when it has no group for so long: a unit that is started anew is no fault.
const PATIENCE_NS: u64 = 3_000_000_000;

/// A scope of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredScope {
    /// Its name.
    pub name: Arc<str>,
    /// Path of its groups below the mount of the cpu controller, with `*` and `?`.
    pub cgroup: Arc<str>,
    /// How many groups it has, or why none.
    pub found: Found,
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

/// What was told of a configured scope.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Missed {
    since_ns: Option<u64>,
    is_told: bool,
}

impl Missed {
    /// Takes down what a search came to at `now_ns`, and tells of it when it has lasted.
    pub(super) fn look(&mut self, now_ns: u64, scope: &ConfiguredScope, mail: &mut Mailbox) {
        let Some(without) = scope.without_group() else {
            if self.is_told {
                mail.tell(Event::GroupFound {
                    scope: Arc::clone(&scope.name),
                });
            }
            *self = Self::default();
            return;
        };
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if !self.is_told && now_ns.saturating_sub(since_ns) >= PATIENCE_NS {
            self.is_told = true;
            mail.tell(Event::WithoutGroup {
                scope: Arc::clone(&scope.name),
                without,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::snapshot::SnapshotCell;

    const SECOND_NS: u64 = 1_000_000_000;

    fn typo(found: Found) -> ConfiguredScope {
        ConfiguredScope {
            name: "typo".into(),
            cgroup: "/system.slice/brun.service".into(),
            found,
        }
    }

    #[test]
    fn field_s12_a_scope_without_a_group_is_told_once_and_when_it_has_one_again() {
        let (mut mail, handle) = Mailbox::new(SnapshotCell::default());
        let mut missed = Missed::default();
        let mut told = |second: u64, found| {
            missed.look(second * SECOND_NS, &typo(found), &mut mail);
            handle.events().collect::<Vec<_>>()
        };
        assert_eq!(told(1, Err(NoGroup::Nowhere)), []);
        assert_eq!(told(2, Ok(1)), [], "it was started anew");
        assert_eq!(told(3, Err(NoGroup::Nowhere)), []);
        let events = told(6, Err(NoGroup::Nowhere));
        let [Event::WithoutGroup { scope, without }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(&**scope, "typo");
        assert!(without.is_one_group());
        let text = without.to_string();
        assert!(
            text.starts_with("no group at /system.slice/brun.service: "),
            "{text}"
        );
        assert_eq!(told(7, Err(NoGroup::Nowhere)), []);
        assert!(matches!(told(8, Ok(1))[..], [Event::GroupFound { .. }]));
        assert_eq!(told(9, Ok(1)), []);
    }

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
