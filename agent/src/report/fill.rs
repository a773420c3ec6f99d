//! Fills a scrape from the state of the agent. It runs on a scrape, never in the tick.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Mode, RefusalKind, ScopeState};
use tidegate_limits::breaker::BreakerState;
use tidegate_segment::clock::monotonic_ns;

use super::ebpf;
use super::why;
use crate::control::{ScopeSnapshot, Snapshot, WaiterRung};
use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::signal::{Pressure, TriggerForm};
use crate::telemetry::metric::MetricId;
use crate::telemetry::scrape::Scrape;
use crate::tenant::Tenant;
use crate::tenant::rule_counts::RuleActivity;

/// A scrape of the agent, the scopes and these tenants.
pub fn scrape(context: &AgentState, tenants: &[NamedTenant]) -> Scrape {
    let mut scrape = context.metrics.scrape();
    let snapshot = context.control.snapshot();
    for scope in &snapshot.scopes {
        fill_scope(&mut scrape, scope, snapshot.now_ns);
    }
    for scope in &snapshot.configured {
        let groups = u64::from(scope.groups());
        scrape.set_count(MetricId::ConfiguredScopeGroups, &[&scope.name], groups);
    }
    for named in tenants {
        fill_tenant(&mut scrape, label(named), &named.tenant);
    }
    fill_agent(&mut scrape, context);
    for places in context.bounds.iter() {
        for (full, count) in places.turned_away() {
            let labels = [places.what(), full.name()];
            scrape.set_count(MetricId::TurnedAway, &labels, count);
        }
    }
    if let Some(programs) = &context.kernel {
        ebpf::fill(&mut scrape, &programs.report(), &snapshot);
    }
    fill_rungs(&mut scrape, &snapshot);
    scrape.set_count(MetricId::Ticks, &[], snapshot.ticks);
    for (pressure, count) in Pressure::ALL.iter().zip(snapshot.triggers.early) {
        scrape.set_count(MetricId::EarlyTicks, &[pressure.name()], count);
    }
    scrape.set_count(MetricId::RecordingLost, &[], snapshot.recording_lost);
    let begun_anew = snapshot.recordings_begun_anew;
    scrape.set_count(MetricId::RecordingBegunAnew, &[], begun_anew);
    for (kind, count) in context.events.counts().filter(|(_kind, count)| *count > 0) {
        scrape.set_count(MetricId::Events, &[kind.name()], count);
    }
    fill_process(&mut scrape);
    scrape
}

/// The steps in use, as `tidegate doctor` tells them with what would give better ones.
fn fill_rungs(scrape: &mut Scrape, snapshot: &Snapshot) {
    let mut set = |ladder, rung| scrape.set_flag(MetricId::Rung, &[ladder, rung], true);
    set("sampler", snapshot.scheduling.name());
    set("clock", snapshot.clock());
    let ladders = ["trigger cpu", "trigger memory", "trigger io"];
    for (ladder, state) in ladders.into_iter().zip(snapshot.triggers.states) {
        set(ladder, state.map_or("none", TriggerForm::name));
    }
}

fn fill_scope(scrape: &mut Scrape, scope: &ScopeSnapshot, now_ns: u64) {
    let name = &*scope.name;
    for (id, reading) in scope.readings.iter() {
        let labels = [name, id.name()];
        scrape.set_flag(MetricId::SignalMeasured, &labels, reading.value().is_some());
        match reading.get() {
            Ok(value) => scrape.set(MetricId::Signal, &labels, value),
            Err(missing) => {
                let labels = [name, id.name(), missing.fault.cause()];
                scrape.set_flag(MetricId::SignalMissing, &labels, true);
            }
        }
    }
    let rung = WaiterRung::of(&scope.readings).name();
    scrape.set_flag(MetricId::WaitersRung, &[name, rung], true);
    let word = scope.published.word();
    let state = why::state_of(scope);
    let states = ScopeState::ALL.iter().map(|state| state.name());
    for one in states.chain([why::BUSY]) {
        scrape.set_flag(MetricId::ScopeState, &[name, one], one == state);
    }
    let labels = [name, word.state.name()];
    let since = Duration::from_nanos(now_ns.saturating_sub(scope.since_ns));
    scrape.set(MetricId::ScopeStateTime, &labels, since.as_secs_f64());
    let incident = Duration::from_nanos(scope.published.incident_ns);
    scrape.set(MetricId::ScopeIncident, &[name], incident.as_secs_f64());
    scrape.set_count(MetricId::ScopeInflight, &[name], scope.counts.inflight);
    for (limit, value) in [("entry", word.entry), ("tight", word.tight)] {
        if value < ScopeWord::LIMIT_MAX {
            let labels = [name, limit];
            scrape.set(MetricId::ScopeInflightLimit, &labels, f64::from(value));
        }
    }
    scope_counters(scrape, scope);
    if let Some(declared) = scope.declared_cpus {
        scrape.set(MetricId::ScopeDeclaredCpus, &[name], declared.cpus);
        scrape.set_flag(MetricId::ScopeCpusConflict, &[name], declared.conflicts());
    }
    if let Some(qps) = scope.published.allowed_qps {
        scrape.set(MetricId::AllowedQps, &[name], qps);
    }
}

/// The value of the label `tenant`. Empty is the same as no label: series of the default tenant look
/// alike whether there are others or not.
fn label(named: &NamedTenant) -> &str {
    if named.is_default() { "" } else { &named.name }
}

fn fill_tenant(scrape: &mut Scrape, label: &str, tenant: &Tenant) {
    fill_resources(scrape, label, tenant);
    fill_rules(scrape, label, tenant);
    fill_breakers(scrape, label, tenant);
    let expired = tenant.timed_permits().lock().expired();
    scrape.set_count(MetricId::PermitsExpired, &[label], expired);
    let clients = u64::try_from(tenant.clients().count()).unwrap_or(u64::MAX);
    scrape.set_count(MetricId::Clients, &[label], clients);
    let (taken, seats) = tenant.seats().taken();
    scrape.set_count(MetricId::SeatsTaken, &[label], taken);
    scrape.set_count(MetricId::SeatsMax, &[label], seats);
    for (full, count) in tenant.seats().refused() {
        scrape.set_count(MetricId::SeatsRefused, &[full.name(), label], count);
    }
    let without_agent = tenant.seats().unusual().without_agent;
    scrape.set_count(MetricId::DecisionsWithoutAgent, &[label], without_agent);
    let memory = tenant.ledger_memory();
    scrape.set_count(MetricId::LedgerMemory, &[label], memory.bytes);
    scrape.set_count(MetricId::LedgerExplained, &[label], memory.explained_bytes);
    scrape.set_count(MetricId::LedgerGivenBack, &[label], memory.given_back_bytes);
    for (reason, count) in tenant.earlier().refused() {
        scrape.set_count(MetricId::HandBacksRefused, &[reason, label], count);
    }
    let earlier = tenant.earlier().in_flight();
    scrape.set_count(MetricId::EarlierInflight, &[label], earlier.requests);
    let generation = tenant.board().rules_generation();
    scrape.set_count(MetricId::RulesGeneration, &[label], generation);
}

fn scope_counters(scrape: &mut Scrape, scope: &ScopeSnapshot) {
    let labels = [&*scope.name];
    scrape.set_count(MetricId::ScopeChanges, &labels, scope.changes);
    scrape.set_count(MetricId::ScopeOneShots, &labels, scope.one_shots);
    scrape.set_count(MetricId::ScopeObserved, &labels, scope.observed);
    let times = scope.ineffective_times;
    scrape.set_count(MetricId::ScopeIneffective, &labels, times);
    if let Some(level) = scope.cutoff {
        scrape.set(MetricId::ScopeCutoff, &labels, f64::from(level));
    }
}

fn fill_resources(scrape: &mut Scrape, label: &str, tenant: &Tenant) {
    for (name, limit) in tenant.directory().rule_index().rules().bulkheads() {
        let labels = [name, label];
        scrape.set(MetricId::ResourceBulkhead, &labels, f64::from(limit));
    }
    for (name, slot) in tenant.directory().list() {
        let labels = [&*name, label];
        let counts = tenant.seats().node_counts(slot);
        scrape.set_count(MetricId::ResourcePassed, &labels, counts.passed);
        for (kind, count) in RefusalKind::ALL.iter().zip(counts.refused) {
            scrape.set_count(
                MetricId::ResourceRefused,
                &[&name, kind.name(), label],
                count,
            );
        }
        if let Some(node) = tenant.ledger().node(slot.index) {
            let (qps, concurrency) = node.observed();
            let observed = u64::from(qps).saturating_add(u64::from(concurrency));
            scrape.set_count(MetricId::ResourceObserved, &labels, observed);
        }
        scrape.set_count(MetricId::ResourceFailed, &labels, counts.error);
        scrape.set_count(MetricId::ResourceInflight, &labels, counts.inflight);
        let times = tenant.ledger().times(slot);
        scrape.set_count(MetricId::ResourceWaits, &labels, times.waited);
        let ended = (counts.success, Duration::from_nanos(counts.rt_ns));
        scrape.set_times(MetricId::ResourceRt, &labels, ended, &times);
    }
}

/// What each rule did. A rule that has only ever refused, or only observed, has the series of that alone.
fn fill_rules(scrape: &mut Scrape, label: &str, tenant: &Tenant) {
    for rule in tenant.rule_counts() {
        let (kind, id) = &rule.key;
        let resource = rule.resource.as_deref().unwrap_or_default();
        let labels = [&**id, kind.name(), resource, label];
        let RuleActivity { refused, observed } = rule.counts;
        if rule.mode == Mode::Enforce || refused > 0 {
            scrape.set_rule(MetricId::RuleRefused, labels, refused);
        }
        if rule.mode == Mode::Observe || observed > 0 {
            scrape.set_rule(MetricId::RuleObserved, labels, observed);
        }
    }
}

fn fill_breakers(scrape: &mut Scrape, label: &str, tenant: &Tenant) {
    for breaker in tenant.breakers(monotonic_ns()) {
        for state in BreakerState::ALL {
            let labels = [&*breaker.resource, &*breaker.rule, state.name(), label];
            scrape.set_flag(MetricId::BreakerState, &labels, breaker.state == state);
            let changes = u64::from(breaker.changes.to(state));
            scrape.set_count(MetricId::BreakerChanges, &labels, changes);
        }
    }
}

fn fill_agent(scrape: &mut Scrape, context: &AgentState) {
    let version = [env!("CARGO_PKG_VERSION")];
    scrape.set_flag(MetricId::BuildInfo, &version, true);
    let uptime = context.started.elapsed().as_secs_f64();
    scrape.set(MetricId::Uptime, &[], uptime);
    let reloaded = context.reload_succeeded();
    scrape.set_flag(MetricId::ConfigReloadSuccessful, &[], reloaded);
    let at_start = context.reload.is_of_start();
    scrape.set_flag(MetricId::ConfigRefusedAtStart, &[], at_start);
}

/// CPU time and memory of this process; left out where the kernel does not tell them.
fn fill_process(scrape: &mut Scrape) {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    if let Ok(used) = Duration::try_from(used) {
        scrape.set(MetricId::ProcessCpu, &[], used.as_secs_f64());
    }
    let status = procfs::process::Process::myself().and_then(|own| own.status());
    let resident_kib = status.ok().and_then(|status| status.vmrss);
    if let Some(resident_kib) = resident_kib {
        let bytes = resident_kib.saturating_mul(1024);
        scrape.set_count(MetricId::ProcessResidentMemory, &[], bytes);
    }
}
