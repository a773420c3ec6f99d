//! Where the agent has what from, and which permits nobody has given back.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_segment::board::Slot;
use tidegate_segment::clock::monotonic_ns;

use super::ListedWord;
use crate::host::tenants::NamedTenant;
use crate::telemetry::facts::{Facts, SourceFacts};
use crate::tenant::permit::Outstanding;

/// Where the rules in force are from.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesReport {
    /// Of all tenants.
    pub count: u64,
    /// The directory of all.
    pub directory: String,
    /// Whether the directory is there.
    pub found: bool,
    /// Seconds since they were read.
    pub read_s: Option<f64>,
    /// Whether the last reload of configuration and rules was taken over.
    pub reload_ok: bool,
    /// Where the rules of all tenants are from.
    pub sources: Vec<RuleSourceReport>,
}

/// A source of rules.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSourceReport {
    /// A path or an address.
    pub name: String,
    /// Word for its kind.
    pub kind: ListedWord,
    /// `present` or `missing`, when it was read last.
    pub state: ListedWord,
    /// Version of the set that it gave last: equal for equal texts. 16 hexadecimal digits.
    pub version: String,
    /// Faults of that set; where there are any, the rules before stay in force.
    pub faults: usize,
}

/// Permits given over HTTP, which no process holds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpPermitsReport {
    /// Not given back yet.
    pub held: u64,
    /// Seconds since the first of them was given.
    pub oldest_s: Option<f64>,
    /// Ended by the clock, of all resources.
    pub expired_total: u64,
}

pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl RulesReport {
    pub(super) fn of(facts: &Facts, reload_ok: bool) -> Self {
        Self {
            count: u64::try_from(facts.rules).unwrap_or(u64::MAX),
            directory: shown(&facts.rules_directory),
            found: facts.rules_directory.is_dir(),
            read_s: facts.rules_read.map(|read| read.elapsed().as_secs_f64()),
            reload_ok,
            sources: facts.sources.iter().map(RuleSourceReport::of).collect(),
        }
    }
}

impl RuleSourceReport {
    fn of(source: &SourceFacts) -> Self {
        Self {
            name: source.name.clone(),
            kind: source.kind.into(),
            state: source.state.into(),
            version: format!("{:016x}", source.version),
            faults: source.faults,
        }
    }
}

impl HttpPermitsReport {
    /// Those of a resource, or of all of these tenants.
    pub(super) fn of(tenants: &[NamedTenant], resource: Option<Slot>) -> Self {
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
