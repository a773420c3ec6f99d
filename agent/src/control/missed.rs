//! Says which scopes of the configuration have no group: once, when that has lasted.

use std::sync::Arc;

use super::configured::ConfiguredScope;
use super::mailbox::Mailbox;
use super::request::Event;

/// A scope is missed aloud when it has no group for so long: a unit that is started anew is no fault.
const PATIENCE_NS: u64 = 3_000_000_000;

/// What was told of the scopes of a configuration, in its order.
#[derive(Debug, Default)]
pub(super) struct MissedScopes(Vec<Missed>);

impl MissedScopes {
    /// Takes down what a search came to at `now_ns`, and tells of scopes without a group. One that was not searched
    /// for yet is `None`.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        scopes: impl Iterator<Item = Option<ConfiguredScope>>,
        mail: &mut Mailbox,
    ) {
        for (place, scope) in scopes.enumerate() {
            if self.0.len() <= place {
                self.0.push(Missed::default());
            }
            if let (Some(missed), Some(scope)) = (self.0.get_mut(place), scope) {
                missed.look(now_ns, &scope, mail);
            }
        }
    }
}

/// What was told of one.
#[derive(Debug, Clone, Copy, Default)]
struct Missed {
    since_ns: Option<u64>,
    is_told: bool,
}

impl Missed {
    /// Tells of it when it has lasted.
    fn look(&mut self, now_ns: u64, scope: &ConfiguredScope, mail: &mut Mailbox) {
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
    use crate::signal::{GroupMatches, NoGroup};

    const SECOND_NS: u64 = 1_000_000_000;

    fn typo(found: GroupMatches) -> ConfiguredScope {
        ConfiguredScope {
            name: "typo".into(),
            cgroup: "/system.slice/brun.service".into(),
            found,
        }
    }

    #[test]
    fn field_s12_a_scope_without_a_group_is_told_once_and_when_it_has_one_again() {
        let (mut mail, handle) = Mailbox::new(SnapshotCell::default());
        let mut missed = MissedScopes::default();
        let mut told = |second: u64, found| {
            let scopes = std::iter::once(Some(typo(found)));
            missed.look(second * SECOND_NS, scopes, &mut mail);
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
}
