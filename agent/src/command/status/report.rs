//! What is read of a status; whatever else it has is for scripts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::warnings::Warnings;
use crate::report::threads;
use crate::telemetry::reload::Refused;

/// A status. Fields that an older agent does not tell are absent.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Status {
    pub agent: Agent,
    pub scopes: Vec<Scope>,
    pub resources: Vec<Resource>,
    pub clients: Vec<Client>,
    #[serde(default)]
    pub warnings: Warnings,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Agent {
    pub version: String,
    pub uptime_s: f64,
    pub tick_ms: f64,
    pub tick_late_p99_ms: Option<f64>,
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub directory: String,
    pub config: Option<String>,
    pub rules: Option<Rules>,
    #[serde(default)]
    pub http_permits: HttpPermits,
    pub reload_refused: Option<Refused>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Rules {
    pub count: u64,
    pub directory: String,
    pub found: bool,
    pub read_s: Option<f64>,
    pub reload_ok: bool,
}

/// Permits that were given over HTTP.
#[derive(Debug, Default, Deserialize)]
pub(in crate::command) struct HttpPermits {
    pub held: u64,
    pub oldest_s: Option<f64>,
    pub expired_total: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Scope {
    pub name: String,
    pub state: String,
    pub cause: String,
    pub why: Option<String>,
    pub refuses: bool,
    pub inflight: u64,
    pub passed_total: u64,
    pub refused_total: u64,
    pub shed_total: u64,
    pub course: Option<Course>,
    pub signals: BTreeMap<String, Signal>,
    pub threads: Vec<threads::Group>,
    pub limits: Limits,
}

#[derive(Debug, Deserialize)]
pub(super) struct Course {
    pub since_s: f64,
    pub changes_total: u64,
    pub demand: f64,
    pub healthy_ticks: [u32; 2],
    pub ineffective: bool,
    pub resting: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Signal {
    Value { value: f64, unit: String },
    Missing { not_measured: String },
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Limits {
    pub inflight: Option<u64>,
    pub allowed_qps: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    pub tenant: String,
    pub name: String,
    pub passed_total: u64,
    pub refused_total: BTreeMap<String, u64>,
    pub inflight: u64,
    pub rt_ms: Option<f64>,
    pub rules: Vec<String>,
    pub breakers: Vec<Breaker>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Breaker {
    pub rule: String,
    pub state: String,
    pub left_ms: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Client {
    pub tenant: String,
    pub pid: u32,
    pub uid: u32,
    pub name: String,
    pub door: String,
    pub scope: String,
    pub held: u64,
}

impl Resource {
    /// Refused for any reason.
    pub(super) fn refused(&self) -> u64 {
        let counts = self.refused_total.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// A status of some time ago.
#[derive(Debug)]
pub(super) struct Before<'s> {
    pub status: &'s Status,
    /// How long ago.
    pub seconds: f64,
}

impl Before<'_> {
    /// How fast a count of a scope grows, 1/s; `None` where the scope is new.
    pub(super) fn rate_of_scope(&self, scope: &Scope, count: fn(&Scope) -> u64) -> Option<f64> {
        let mut all = self.status.scopes.iter();
        let before = all.find(|before| before.name == scope.name)?;
        Some(self.rate(count(before), count(scope)))
    }

    /// The same of a resource. `at` is where it stands in the list, and mostly stood before.
    pub(super) fn rate_of_resource(
        &self,
        (at, resource): (usize, &Resource),
        count: fn(&Resource) -> u64,
    ) -> Option<f64> {
        let is_it =
            |before: &&Resource| before.name == resource.name && before.tenant == resource.tenant;
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
