//! What the log says of scopes and breakers that have changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::breaker::BreakerState;

use crate::control::{Event, ScopeSnapshot, Snapshot};
use crate::report::verdict::host_verdict;
use crate::report::why;
use crate::rule::changed::{RuleChangeWord, changes};
use crate::rule::{Body, RuleSet};
use crate::telemetry::verdict::HostVerdict;
use crate::tenant::Tenant;
use crate::tenant::breakers::{BreakerEvent, BreakerNow};
use crate::words::many;

/// The scopes that are in overload and were told to be busy, since they have refused nobody yet.
#[derive(Debug, Default)]
pub(super) struct Busy(BTreeSet<Arc<str>>);

impl Busy {
    /// The words for a change of a scope's state.
    fn words(
        &mut self,
        scope: &Arc<str>,
        [from, to]: [ScopeState; 2],
        now: Option<&ScopeSnapshot>,
    ) -> [&'static str; 2] {
        let was_busy = self.0.remove(scope);
        let refuses = now.is_none_or(why::refuses);
        if to == ScopeState::Overload && !refuses {
            self.0.insert(Arc::clone(scope));
        }
        [
            why::state_word(from, !was_busy),
            why::state_word(to, refuses),
        ]
    }

    /// Logs which of them have begun to refuse.
    pub(super) fn tell(&mut self, snapshot: &Snapshot) {
        for now in snapshot.scopes.iter().filter(|now| why::refuses(now)) {
            if now.published.state == ScopeState::Overload && self.0.remove(&now.name) {
                let words = [why::BUSY, now.published.state.name()];
                let text = state(&now.name, words, why::cause(now).as_deref(), None);
                let cause = now.published.cause.name();
                let [from, to] = words;
                let scope = &*now.name;
                tracing::warn!(event = "scope_state", scope, from, to, cause, "{text}");
            }
        }
    }
}

/// The verdict that was told last.
#[derive(Debug, Default)]
pub(super) struct LastVerdict(Option<HostVerdict>);

impl LastVerdict {
    /// Tells a verdict that says something else than the last one. The log has the states of the scopes already.
    pub(super) fn tell(&mut self, snapshot: &Snapshot) {
        let Some(now) = host_verdict(snapshot) else {
            return;
        };
        let from = match &self.0 {
            Some(last) if last.is_like(&now) => return,
            Some(last) => last.level.name(),
            None => "none",
        };
        let (to, cause) = (now.level.name(), now.cause.name());
        let scope = now.scope.as_deref().unwrap_or_default();
        tracing::debug!(
            event = "verdict",
            kept = true,
            scope,
            from,
            to,
            cause,
            "{now}"
        );
        self.0 = Some(now);
    }
}

/// Logs what happened to a scope, with what the last tick measured.
pub(super) fn scope(busy: &mut Busy, event: &Event, snapshot: &Snapshot) {
    match event {
        Event::State {
            scope,
            from,
            to,
            cause,
            observed,
        } => {
            let now = scope_now(scope, *cause, snapshot);
            let why = now.and_then(why::cause);
            let words = busy.words(scope, [*from, *to], now);
            let observed = only_observed([*from, *to], *observed);
            let text = state(scope, words, why.as_deref(), observed);
            let ([from, to], scope, cause) = (words, &**scope, cause.name());
            tracing::warn!(event = "scope_state", scope, from, to, cause, "{text}");
        }
        Event::Ineffective { scope, cause } => tracing::warn!(
            event = "shedding_ineffective",
            scope = &**scope,
            cause = cause.name(),
            "{scope}: shedding does not lower the pressure; only the entry limit is in force for now"
        ),
        Event::WithoutGroup { scope, without } => {
            tracing::warn!(event = "scope_without_group", "scope {scope}: {without}");
        }
        Event::GroupFound { scope } => {
            tracing::info!(
                event = "scope_group_found",
                "scope {scope}: has a group now"
            );
        }
        Event::GroupUnseen { missing } => tracing::warn!(
            event = "client_group_unseen",
            "a service is in a group that is not in sight ({missing}), so it belongs to the scope host alone: run the \
             agent in the host's cgroup namespace (--cgroupns=host) with the host's /sys/fs/cgroup"
        ),
        Event::CpusDoubted { scope } => tracing::warn!(
            event = "scope_cpus_doubted",
            "{scope}: uses more CPUs than were found for its group, so a limit was misread and its share of them is not \
             measured: declare them (cpus in its [[scope]])"
        ),
        Event::DeclaredCpus { scope, declared } if declared.conflicts() => {
            tracing::warn!(event = "scope_cpus_declared", "{scope}: {declared}");
        }
        Event::DeclaredCpus { scope, declared } => {
            tracing::info!(event = "scope_cpus_declared", "{scope}: {declared}");
        }
    }
}

/// A scope as the last tick measured it, unless it has gone on since.
fn scope_now<'s>(scope: &str, cause: Cause, snapshot: &'s Snapshot) -> Option<&'s ScopeSnapshot> {
    let now = snapshot.scopes.iter().find(|now| &*now.name == scope);
    now.filter(|now| now.published.cause == cause)
}

/// `observed` = how many it would have refused in the state that it leaves, where it only observes.
fn state(
    scope: &str,
    [from, to]: [&str; 2],
    why: Option<&str>,
    observed: Option<String>,
) -> String {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let observed = observed.unwrap_or_default();
    format!("{scope}: {from} -> {to}{why}{observed}")
}

/// What a scope that only observes adds to a change of its state; nothing where it refuses. `observed` = how many it
/// would have refused in the state that it leaves.
fn only_observed([from, to]: [ScopeState; 2], observed: Option<u64>) -> Option<String> {
    let observed = observed?;
    let refuses = |state| matches!(state, ScopeState::Overload | ScopeState::Reject);
    if refuses(from) {
        let requests = many(observed, "request");
        return Some(format!(
            "; it only observes, and found its limits reached by {requests}"
        ));
    }
    refuses(to).then(|| "; it only observes and refuses nobody".to_owned())
}

/// Logs a change of a breaker of a tenant.
pub(super) fn breaker(tenant: &Tenant, name: &str, change: &BreakerEvent) {
    let text = breaker_text(&change.now, tripped(tenant, &change.now).as_deref());
    let BreakerNow {
        resource,
        rule,
        state,
        ..
    } = &change.now;
    let (resource, rule, to) = (&**resource, &**rule, state.name());
    tracing::warn!(
        event = "breaker_state",
        tenant = name,
        resource,
        rule,
        to,
        "{text}"
    );
}

/// Most changes of rules that are told one by one.
const CHANGES_MAX: usize = 10;

/// Logs how the rules of a tenant have changed.
pub(super) fn rules(tenant: &str, new: &RuleSet, old: &RuleSet) {
    let all = changes(new, old);
    if all.is_empty() {
        return;
    }
    let count = |what| all.iter().filter(|change| change.what == what).count();
    let [added, removed, changed] = [
        RuleChangeWord::Added,
        RuleChangeWord::Removed,
        RuleChangeWord::Changed,
    ]
    .map(count);
    let told = all.iter().take(CHANGES_MAX);
    let mut told: Vec<String> = told.map(ToString::to_string).collect();
    let more = all.len().saturating_sub(CHANGES_MAX);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    let text = told.join("; ");
    tracing::info!(
        event = "rules_changed",
        tenant,
        added,
        removed,
        changed,
        "{text}"
    );
}

/// How many ticks were told to be lost to the recording, and when the last time was, s.
#[derive(Debug, Default)]
pub(super) struct Lost {
    ticks: u64,
    quiet_s: u32,
}

impl Lost {
    /// Logs what has been lost since, once a minute at most. Called each second.
    pub(super) fn tell(&mut self, snapshot: &Snapshot) {
        self.quiet_s = self.quiet_s.saturating_sub(1);
        let ticks = snapshot.recording_lost.saturating_sub(self.ticks);
        if ticks == 0 || self.quiet_s > 0 {
            return;
        }
        (self.ticks, self.quiet_s) = (snapshot.recording_lost, 60);
        let text = "could not be recorded: the disk does not keep up or is full";
        tracing::warn!(
            event = "recording_lost",
            ticks,
            "{} of scopes {text}",
            many(ticks, "tick")
        );
    }
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
        BreakerState::Open => {
            let by = tripped.map_or_else(String::new, |by| format!(" ({by})"));
            let times = many(now.changes.open.into(), "time");
            format!("opened{by}, {times} so far")
        }
        BreakerState::HalfOpen => "lets a probe through".to_owned(),
        BreakerState::Closed => "closed".to_owned(),
    };
    format!("breaker {} of {} {did}", now.rule, now.resource)
}

#[cfg(test)]
mod tests {
    use tidegate_segment::ledger::BreakerChanges;

    use super::*;

    #[test]
    fn field_o11_changes_are_told_as_a_person_says_them() {
        use ScopeState::{Healthy, Overload};
        let why = "load is high (load1 4.6, mark 2)";
        assert_eq!(
            state("host", ["cold", "busy"], Some(why), None),
            "host: cold -> busy: load is high (load1 4.6, mark 2)"
        );
        let observed = |change: [ScopeState; 2], many| {
            let words = change.map(ScopeState::name);
            state("host", words, None, only_observed(change, many))
        };
        assert_eq!(
            observed([Overload, Healthy], None),
            "host: overload -> healthy"
        );
        assert_eq!(
            observed([Healthy, Overload], Some(0)),
            "host: healthy -> overload; it only observes and refuses nobody"
        );
        assert_eq!(
            observed([Overload, Healthy], Some(7)),
            "host: overload -> healthy; it only observes, and found its limits reached by 7 requests"
        );
        let mut now = BreakerNow {
            resource: "payment".into(),
            rule: "pay-errors".to_owned(),
            state: BreakerState::Open,
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
        now.state = BreakerState::HalfOpen;
        assert_eq!(
            breaker_text(&now, None),
            "breaker pay-errors of payment lets a probe through"
        );
    }
}
