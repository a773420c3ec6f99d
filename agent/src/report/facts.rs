//! Where the agent has what from, and which permits nobody has given back.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tidegate_segment::board::Slot;
use tidegate_segment::clock::monotonic_ns;

use crate::host::tenants::Named;
use crate::telemetry::facts::Facts;
use crate::tenant::permit::Outstanding;

/// Where the rules in force are from.
#[derive(Debug, Serialize)]
pub(super) struct Rules {
    /// Of all tenants.
    count: usize,
    directory: String,
    /// Whether the directory is there.
    found: bool,
    /// Seconds since they were read.
    read_s: Option<f64>,
    /// Whether the last reload of configuration and rules was taken over.
    reload_ok: bool,
}

/// Permits given over HTTP, which no process holds.
#[derive(Debug, Serialize)]
pub(super) struct HttpPermits {
    /// Not given back yet.
    held: u64,
    /// Seconds since the first of them was given.
    oldest_s: Option<f64>,
    /// Ended by the clock, of all resources.
    expired_total: u64,
}

pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Rules {
    pub(super) fn of(facts: &Facts, reload_ok: bool) -> Self {
        Self {
            count: facts.rules,
            directory: shown(&facts.rules_directory),
            found: facts.rules_directory.is_dir(),
            read_s: facts.rules_read.map(|read| read.elapsed().as_secs_f64()),
            reload_ok,
        }
    }
}

impl HttpPermits {
    /// Those of a resource, or of all of these tenants.
    pub(super) fn of(tenants: &[Named], resource: Option<Slot>) -> Self {
        let (mut held, mut expired_total) = (Outstanding::default(), 0_u64);
        for named in tenants {
            let permits = named.tenant.timed_permits().lock();
            held = held.and(permits.outstanding(resource));
            expired_total = expired_total.saturating_add(permits.expired());
        }
        let age = Duration::from_nanos(monotonic_ns().saturating_sub(held.oldest_ns));
        Self {
            held: held.permits,
            oldest_s: (held.permits > 0).then_some(age.as_secs_f64()),
            expired_total,
        }
    }
}
