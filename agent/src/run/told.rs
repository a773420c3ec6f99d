//! What the log says of scopes and breakers that have changed.

use tidegate_limits::breaker::State;

use crate::control::{Event, Snapshot};
use crate::report::why;
use crate::rule::Body;
use crate::tenant::Tenant;
use crate::tenant::breakers::{BreakerChange, BreakerNow};
use crate::words::many;

/// Logs a change of a scope, with what the last tick measured.
pub(super) fn scope(event: &Event, snapshot: &Snapshot) {
    let (scope, cause) = match event {
        Event::State { scope, cause, .. } | Event::Ineffective { scope, cause } => (scope, cause),
    };
    let now = snapshot.scopes.iter().find(|now| now.name == *scope);
    // It may have gone on since.
    let now = now.filter(|now| now.published.cause == *cause);
    let why = now.and_then(why::cause);
    let cause = cause.name();
    match event {
        Event::State { from, to, .. } => {
            let text = state(scope, [from.name(), to.name()], why.as_deref());
            tracing::warn!(event = "scope_state", cause, "{text}");
        }
        Event::Ineffective { .. } => tracing::warn!(
            event = "shedding_ineffective",
            cause,
            "{scope}: shedding does not lower the pressure; only the entry limit is in force for now"
        ),
    }
}

fn state(scope: &str, [from, to]: [&str; 2], why: Option<&str>) -> String {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{scope}: {from} -> {to}{why}")
}

/// Logs a change of a breaker of a tenant.
pub(super) fn breaker(tenant: &Tenant, name: &str, change: &BreakerChange) {
    let text = breaker_text(&change.now, tripped(tenant, &change.now).as_deref());
    tracing::warn!(event = "breaker_state", tenant = name, "{text}");
}

/// What opened it, against which threshold.
fn tripped(tenant: &Tenant, now: &BreakerNow) -> Option<String> {
    let limits = tenant.directory().rule_index();
    let mut rules = limits.rules().rules().iter();
    let rule = rules.find(|rule| rule.id == now.rule)?;
    match &rule.body {
        Body::Degrade(degrade) => Some(degrade.trip.tripped(now.opened_by)),
        Body::Authority(_) | Body::System(_) | Body::Param(_) | Body::Flow(_) => None,
    }
}

fn breaker_text(now: &BreakerNow, tripped: Option<&str>) -> String {
    let did = match now.state {
        State::Open => {
            let by = tripped.map_or_else(String::new, |by| format!(" ({by})"));
            let times = many(now.changes.open.into(), "time");
            format!("opened{by}, {times} so far")
        }
        State::HalfOpen => "lets a probe through".to_owned(),
        State::Closed => "closed".to_owned(),
    };
    format!("breaker {} of {} {did}", now.rule, now.resource)
}

#[cfg(test)]
mod tests {
    use tidegate_segment::ledger::BreakerChanges;

    use super::*;

    #[test]
    fn field_o11_changes_are_told_as_a_person_says_them() {
        let why = "load is high (load1 4.6, mark 2)";
        assert_eq!(
            state("host", ["cold", "overload"], Some(why)),
            "host: cold -> overload: load is high (load1 4.6, mark 2)"
        );
        assert_eq!(
            state("host", ["overload", "healthy"], None),
            "host: overload -> healthy"
        );
        let mut now = BreakerNow {
            resource: "payment".into(),
            rule: "pay-errors".to_owned(),
            state: State::Open,
            left_ns: 0,
            calls: (3, 3),
            opened_by: 3.0,
            changes: BreakerChanges {
                open: 1,
                ..BreakerChanges::default()
            },
        };
        assert_eq!(
            breaker_text(&now, Some("3 errors, threshold 2")),
            "breaker pay-errors of payment opened (3 errors, threshold 2), 1 time so far"
        );
        now.state = State::HalfOpen;
        assert_eq!(
            breaker_text(&now, None),
            "breaker pay-errors of payment lets a probe through"
        );
    }
}
