//! The status as it is now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::decision::{Mode, RefusalKind};
use tidegate_segment::board::Slot;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::ledger::NodeCounts;

use super::{
    AgentReport, BreakerReport, ClientReport, CourseReport, DeclaredCpusReport, LimitsReport,
    PagesReport, ResourceReport, ScopeReport, StatusReport, TriggerReport, WithoutGroupReport,
};
use crate::control::{ConfiguredScope, ScopeSnapshot, Snapshot, WaiterRung};
use crate::ebpf::Telemetry;
use crate::host::AgentState;
use crate::host::tenants::NamedTenant;
use crate::procfs::readable;
use crate::report::ebpf::{EbpfReport, NeighbourReport};
use crate::report::facts::{HttpPermitsReport, RulesReport, shown};
use crate::report::signal::SignalReport;
use crate::report::verdict::VerdictReport;
use crate::report::warnings::WarningsReport;
use crate::report::why::{inflight_limit, refuses, why};
use crate::report::{ListedWord, threads, turned_away};
use crate::signal::{Pressure, TriggerForm};
use crate::tenant::Tenant;
use crate::tenant::breakers::BreakerNow;
use crate::tenant::client::ServiceConnection as Connected;

/// Most rules that are named of a resource.
const RULES_MAX: usize = 8;

impl StatusReport {
    /// The status now, of the agent, the scopes and these tenants.
    pub fn of(context: &AgentState, tenants: &[NamedTenant]) -> Self {
        let snapshot = context.control.snapshot();
        let default = &context.tenants.default_one().tenant;
        let facts = context.facts.lock().clone();
        Self {
            verdict: VerdictReport::of(&snapshot),
            agent: AgentReport {
                version: env!("CARGO_PKG_VERSION").into(),
                uptime_s: context.started.elapsed().as_secs_f64(),
                tick_ms: context.tick.as_secs_f64() * 1e3,
                tick_late_p99_ms: Some(snapshot.late_p99.as_secs_f64() * 1e3),
                ticks: snapshot.ticks,
                scheduling: snapshot.scheduling.name().into(),
                clock: snapshot.clock().into(),
                psi_triggers: psi_triggers(&snapshot),
                ebpf: Box::new(EbpfReport::of(
                    context.kernel.as_ref().map(Telemetry::report).as_ref(),
                )),
                rules_generation: default.board().rules_generation(),
                pid: std::process::id(),
                directory: shown(&facts.directory),
                config: facts.config_file.as_deref().map(shown),
                rules: Some(RulesReport::of(&facts, context.reload_succeeded())),
                metrics_listen: facts.metrics_listen,
                http_permits: HttpPermitsReport::of(tenants, None),
                reload_refused: context.reload.refused(),
                turned_away: turned_away::by_bound(context),
                missing_socket: facts.missing_socket.map(ListedWord::from),
                pages: tenants.iter().map(PagesReport::of).collect(),
            },
            scopes: scopes(&snapshot),
            scopes_without_group: without_group(&snapshot),
            resources: resources(tenants),
            clients: clients(tenants, &snapshot),
            warnings: WarningsReport::of(context, tenants, &snapshot),
        }
    }
}

impl PagesReport {
    fn of(named: &NamedTenant) -> Self {
        let earlier = named.tenant.earlier().in_flight();
        Self {
            tenant: named.name.to_string(),
            begun: named.tenant.begun().name().into(),
            earlier_services: earlier.services,
            earlier_inflight: earlier.requests,
        }
    }
}

fn psi_triggers(snapshot: &Snapshot) -> BTreeMap<ListedWord, TriggerReport> {
    let states = snapshot.triggers.states.into_iter();
    let triggers = states.map(|state| TriggerReport {
        rung: state.map_or("none", TriggerForm::name).into(),
        reason: state.err().map(|refusal| refusal.to_string()),
    });
    let names = Pressure::ALL.map(Pressure::name).into_iter();
    names.map(ListedWord::from).zip(triggers).collect()
}

/// The scopes, the host first.
pub fn scopes(snapshot: &Snapshot) -> Vec<ScopeReport> {
    let (now_ns, all) = (snapshot.now_ns, &snapshot.scopes);
    let scopes = all.iter();
    scopes
        .map(|scope| ScopeReport::of(scope, all, now_ns))
        .collect()
}

fn without_group(snapshot: &Snapshot) -> Vec<WithoutGroupReport> {
    let of = |scope: &ConfiguredScope| {
        let without = scope.without_group()?;
        Some(WithoutGroupReport {
            name: scope.name.to_string(),
            one_group: without.is_one_group(),
            remedy: without.why.remedy().to_owned(),
            text: without.to_string(),
            cgroup: without.cgroup.to_string(),
        })
    };
    snapshot.configured.iter().filter_map(of).collect()
}

/// The resources of these tenants, in the order of their slots.
pub fn resources(tenants: &[NamedTenant]) -> Vec<ResourceReport> {
    let of_tenant = |named: &NamedTenant| {
        let directory = named.tenant.directory();
        let all = directory.list().into_iter();
        let all = all.map(|(name, slot)| ResourceReport::of(named, &name, slot));
        all.collect::<Vec<_>>()
    };
    tenants.iter().flat_map(of_tenant).collect()
}

fn clients(tenants: &[NamedTenant], snapshot: &Snapshot) -> Vec<ClientReport> {
    let of_tenant = |named| clients_of(named, snapshot);
    tenants.iter().flat_map(of_tenant).collect()
}

fn clients_of(named: &NamedTenant, snapshot: &Snapshot) -> Vec<ClientReport> {
    let tenant = &named.tenant;
    let clients = tenant.clients().list().into_iter();
    clients
        .map(|client| ClientReport {
            tenant: named.name.to_string(),
            pid: client.who.pid,
            uid: client.who.uid,
            name: client.who.name.clone(),
            door: if client.who.seat.is_some() {
                "shm".into()
            } else {
                "socket".into()
            },
            no_seat: client.who.no_seat.clone(),
            scope: scope_name(snapshot, client.scope().last().place),
            held: held(tenant, &client),
        })
        .collect()
}

fn scope_name(snapshot: &Snapshot, index: u32) -> String {
    let found = snapshot.scopes.iter().find(|scope| scope.index == index);
    found.map_or_else(|| index.to_string(), |scope| scope.name.to_string())
}

/// Inbound permits of the client's seat, and those that the agent holds for it.
fn held(tenant: &Tenant, client: &Connected) -> u64 {
    let seated = client.who.seat.map_or(0, |seat| {
        let word = tenant.board().seat(seat.index);
        if word.live && word.generation == seat.generation {
            tenant.ledger().seat_inflight(seat.index, word)
        } else {
            0
        }
    });
    let held = u64::try_from(client.permits().lock().len()).unwrap_or(u64::MAX);
    held.saturating_add(u64::from(seated))
}

impl ScopeReport {
    fn of(scope: &ScopeSnapshot, all: &[ScopeSnapshot], now_ns: u64) -> Self {
        let published = &scope.published;
        let readings = scope.readings.iter();
        let mode = if published.observes() {
            Mode::Observe
        } else {
            Mode::Enforce
        };
        Self {
            name: scope.name.to_string(),
            cgroup: scope.cgroup.as_ref().map(|path| readable(path)),
            state: scope.published.state.name().into(),
            cause: scope.published.cause.name().into(),
            why: why(scope),
            refuses: refuses(scope),
            inflight: scope.counts.inflight,
            passed_total: scope.counts.passed,
            refused_total: scope.counts.refused,
            shed_total: scope.counts.shed,
            mode: mode.name().into(),
            observed_total: scope.observed,
            evidence: scope
                .published
                .evidence
                .names()
                .map(ListedWord::from)
                .collect(),
            course: Some(CourseReport {
                since_s: Duration::from_nanos(now_ns.saturating_sub(scope.since_ns)).as_secs_f64(),
                changes_total: scope.changes,
                demand: published.demand,
                incident_s: (published.incident_ns > 0)
                    .then(|| Duration::from_nanos(published.incident_ns).as_secs_f64()),
                base_rt_ms: published.base_rt_s.map(|seconds| seconds * 1e3),
                healthy_ticks: [published.healthy_seen, published.healthy_needed],
                ineffective: published.ineffective,
                resting: published.resting,
                withheld_s: Duration::from_nanos(published.withheld_ns).as_secs_f64(),
            }),
            signals: readings
                .map(|(id, reading)| (id.name().into(), SignalReport::of(id, reading)))
                .collect(),
            declared_cpus: scope.declared_cpus.map(|declared| DeclaredCpusReport {
                cpus: declared.cpus,
                allowed: declared.allowed.map(|(cpus, _by)| cpus),
                conflict: declared.conflicts(),
                text: declared.to_string(),
            }),
            waiters: WaiterRung::of(&scope.readings).name().into(),
            threads: threads::of(scope),
            neighbour: NeighbourReport::of(scope, all),
            limits: LimitsReport {
                inflight: inflight_limit(scope),
                allowed_qps: scope.published.allowed_qps,
                cutoff: scope.cutoff,
                load_mark: scope.load_mark,
                cpu_mark: scope.published.cpu_mark,
            },
        }
    }
}

impl ResourceReport {
    /// A resource by its slot.
    pub(in crate::report) fn of(named: &NamedTenant, name: &Arc<str>, slot: Slot) -> Self {
        let counts = named.tenant.seats().node_counts(slot);
        let breakers = named.tenant.breakers_of(name, slot, monotonic_ns());
        let kinds = RefusalKind::ALL.iter().zip(counts.refused);
        Self {
            tenant: named.name.to_string(),
            name: name.to_string(),
            passed_total: counts.passed,
            refused_total: kinds
                .map(|(kind, count)| (kind.name().into(), count))
                .collect(),
            inflight: counts.inflight,
            bulkhead: bulkhead(named, name),
            rt_ms: mean_ms(&counts),
            rules: first_rules(named, name),
            breakers: breakers.into_iter().map(BreakerReport::of).collect(),
        }
    }
}

fn bulkhead(named: &NamedTenant, resource: &str) -> Option<u32> {
    let rules = named.tenant.directory().rule_index();
    let mut held = rules.rules().bulkheads();
    held.find(|(name, _limit)| *name == resource)
        .map(|(_name, limit)| limit)
}

fn first_rules(named: &NamedTenant, name: &str) -> Vec<String> {
    let limits = named.tenant.directory().rule_index();
    let placed = limits.of_resource(name).into_iter().take(RULES_MAX);
    placed
        .map(|placed| format!("{} {}", placed.rule.body.kind().name(), placed.rule.id))
        .collect()
}

impl BreakerReport {
    fn of(now: BreakerNow) -> Self {
        Self {
            state: now.state.name().into(),
            left_ms: now.left_ns.div_ceil(1_000_000),
            opened_total: now.changes.open,
            rule: now.rule,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean for people; over 2^53 ns the last digits do not matter"
)]
fn mean_ms(counts: &NodeCounts) -> Option<f64> {
    let mean_ns = counts.rt_ns as f64 / counts.success as f64;
    (counts.success > 0).then_some(mean_ns / 1e6)
}
