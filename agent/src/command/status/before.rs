//! Two looks at a status, and what has grown between them.

use crate::report::status::{ResourceReport, ScopeReport, StatusReport};

/// A status of some time ago.
#[derive(Debug)]
pub(super) struct Before<'s> {
    pub status: &'s StatusReport,
    /// How long ago.
    pub seconds: f64,
}

impl Before<'_> {
    /// How fast a count of a scope grows, 1/s; `None` where the scope is new.
    pub(super) fn rate_of_scope(
        &self,
        scope: &ScopeReport,
        count: fn(&ScopeReport) -> u64,
    ) -> Option<f64> {
        let mut all = self.status.scopes.iter();
        let before = all.find(|before| before.name == scope.name)?;
        Some(self.rate(count(before), count(scope)))
    }

    /// The same of a resource. `at` is where it stands in the list, and mostly stood before.
    pub(super) fn rate_of_resource(
        &self,
        (at, resource): (usize, &ResourceReport),
        count: fn(&ResourceReport) -> u64,
    ) -> Option<f64> {
        let is_it = |before: &&ResourceReport| {
            before.name == resource.name && before.tenant == resource.tenant
        };
        let resources = &self.status.resources;
        let there = resources.get(at).filter(is_it);
        let before = there.or_else(|| resources.iter().find(is_it))?;
        Some(self.rate(count(before), count(resource)))
    }

    fn rate(&self, before: u64, now: u64) -> f64 {
        let grown = now.saturating_sub(before);
        tidegate_limits::number::double(grown) / self.seconds.max(1e-3)
    }
}
