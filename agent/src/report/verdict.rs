//! The verdict on the scopes as the last tick left them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ListedWord;
use super::why::{cause, inflight_limit, refuses};
use crate::control::Snapshot;
use crate::telemetry::verdict::{HostVerdict, VerdictFacts, verdict};

/// How this host is, in one sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictReport {
    /// `calm`, `watch`, `cold`, `busy`, `overload` or `reject`: how the worst scope is.
    pub level: ListedWord,
    /// Its name; null where all are calm.
    pub scope: Option<String>,
    /// Word for what its state is because of.
    pub cause: ListedWord,
    /// The sentence.
    pub text: String,
}

impl VerdictReport {
    /// The verdict now; `None` before the first tick.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let verdict = host_verdict(snapshot)?;
        Some(Self {
            level: verdict.level.name().into(),
            cause: verdict.cause.name().into(),
            text: verdict.to_string(),
            scope: verdict.scope,
        })
    }
}

/// The verdict now; `None` before the first tick.
pub fn host_verdict(snapshot: &Snapshot) -> Option<HostVerdict> {
    let scopes = snapshot.scopes.iter();
    let texts: Vec<_> = scopes
        .map(|scope| {
            let evidence: Vec<&str> = scope.published.evidence.names().collect();
            (cause(scope).unwrap_or_default(), evidence)
        })
        .collect();
    let scopes = snapshot.scopes.iter().zip(&texts);
    let facts = scopes.map(|(scope, (why, evidence))| VerdictFacts {
        name: &scope.name,
        state: scope.published.state,
        for_s: Duration::from_nanos(snapshot.now_ns.saturating_sub(scope.since_ns)).as_secs_f64(),
        cause: scope.published.cause,
        why,
        evidence,
        refuses: refuses(scope),
        observes: scope.published.observes(),
        inflight: scope.counts.inflight,
        limit: inflight_limit(scope),
    });
    verdict(&facts.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Cause;
    use tidegate_abi::signal::SignalId;

    use super::super::why::tests::scope;
    use super::*;

    #[test]
    fn the_worst_scope_is_told_as_its_last_tick_left_it() {
        assert_eq!(VerdictReport::of(&Snapshot::default()), None);
        let mut host = scope(Cause::Load, &[(SignalId::Load1, 4.6)]);
        host.counts.inflight = 40;
        let snapshot = Snapshot {
            now_ns: 7_000_000_000,
            scopes: vec![host],
            ..Snapshot::default()
        };
        let report = VerdictReport::of(&snapshot).unwrap();
        assert_eq!(
            report.text,
            "overload: host for 7 s, load is high (load1 4.6, mark 2); what is over 32 requests in flight is refused; \
             find what runs or waits for the disk (`top`), or raise the mark ([load])"
        );
        assert_eq!(report.scope.as_deref(), Some("host"));
        assert_eq!((&*report.level, &*report.cause), ("overload", "load"));
    }
}
