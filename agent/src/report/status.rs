//! The shape of `tidegate status --json` and `GET /v1/status`, which scripts rely on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{RefusalKind, ScopeState};
use tidegate_segment::board::Slot;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::ledger::NodeCounts;

use super::ebpf::{Ebpf, Neighbour};
use super::facts::{HttpPermits, Rules, shown};
use super::signal::Signal;
use super::threads;
use super::turned_away;
use super::warnings::Warnings;
use super::why::{refuses, why};
use crate::control::{ScopeSnapshot, Snapshot, WaiterRung};
use crate::ebpf::Telemetry;
use crate::host::Agent;
use crate::host::tenants::Named;
use crate::procfs::readable;
use crate::signal::{Pressure, TriggerForm};
use crate::telemetry::reload::Refused;
use crate::tenant::Tenant;
use crate::tenant::breakers::BreakerNow;
use crate::tenant::client::Client as Connected;

/// Most rules that are named of a resource.
const RULES_MAX: usize = 8;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Status {
    agent: AgentReport,
    scopes: Vec<Scope>,
    resources: Vec<Resource>,
    clients: Vec<Client>,
    /// What is odd about configuration and rules, but taken: above all what has no effect.
    warnings: Warnings,
}

#[derive(Debug, Serialize)]
struct AgentReport {
    version: &'static str,
    uptime_s: f64,
    tick_ms: f64,
    tick_late_p99_ms: f64,
    ticks: u64,
    /// How the kernel schedules the sampler thread.
    scheduling: &'static str,
    /// Where the time comes from.
    clock: &'static str,
    /// What can make a tick come early, by what tasks wait for.
    psi_triggers: BTreeMap<&'static str, Trigger>,
    ebpf: Ebpf,
    rules_generation: u64,
    pid: u32,
    /// Directory of the sockets.
    directory: String,
    /// The configuration; null are the defaults.
    config: Option<String>,
    rules: Rules,
    /// Where metrics are served over TCP; null is nowhere.
    metrics_listen: Option<SocketAddr>,
    http_permits: HttpPermits,
    /// How the last reload of configuration and rules was refused; null if it was taken over.
    reload_refused: Option<Refused>,
    /// Callers that found no place, by what they asked for; what nobody was refused is left out.
    turned_away: BTreeMap<&'static str, u64>,
}

/// A pressure trigger: its form, or why there is none.
#[derive(Debug, Serialize)]
struct Trigger {
    rung: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A scope.
#[derive(Debug, Serialize)]
pub struct Scope {
    name: String,
    /// Path below the mount of the cpu controller; null for the host.
    cgroup: Option<String>,
    state: &'static str,
    cause: &'static str,
    /// Why, and whom it refuses, in a sentence; null while nothing is wrong.
    why: Option<String>,
    /// Whether a request that comes now may be refused by it.
    refuses: bool,
    inflight: u64,
    passed_total: u64,
    /// For any reason.
    refused_total: u64,
    /// By the scope itself.
    shed_total: u64,
    /// What says that the CPU is short now.
    evidence: Vec<&'static str>,
    /// Where it stands on the way to the next state.
    course: Course,
    signals: BTreeMap<&'static str, Signal>,
    /// Where the number of tasks that wait for a CPU comes from.
    waiters: &'static str,
    /// Its threads by what their names begin with, those that used most CPU; none of the host.
    threads: Vec<threads::Group>,
    /// Who takes the CPU from it most often; null if nobody does, or nothing tells it.
    neighbour: Option<Neighbour>,
    limits: Limits,
}

/// Where a scope stands in the state machine of the law.
#[derive(Debug, Serialize)]
struct Course {
    /// Seconds since the state changed.
    since_s: f64,
    /// Changes of state so far.
    changes_total: u64,
    /// Mean demand, as a share of the capacity; overload ends under `[law.release] demand_under_ratio`.
    demand: f64,
    /// Healthy ticks in a row so far, and those that end an overload.
    healthy_ticks: [u32; 2],
    /// Shedding did not lower the pressure: only the entry limit is in force.
    ineffective: bool,
    /// The overload has ended and stays, with the entry limit, for want of changes in this hour.
    resting: bool,
}

#[derive(Debug, Serialize)]
struct Limits {
    /// The limit that holds now: tight in overload, wide otherwise; null is no limit.
    inflight: Option<u32>,
    allowed_qps: Option<f64>,
    /// Level from which requests are cut, 0 to 383, the most important lowest; null is none.
    cutoff: Option<u32>,
    /// Mark on the load average of all CPUs; null is no mark.
    load_mark: Option<f64>,
    /// CPU mark that holds now: lower while garbage collection is in trouble; null is no mark.
    cpu_mark: Option<f64>,
}

/// A resource.
#[derive(Debug, Serialize)]
pub struct Resource {
    tenant: String,
    name: String,
    passed_total: u64,
    refused_total: BTreeMap<&'static str, u64>,
    inflight: u64,
    /// Mean response time of all that ended well; null before the first.
    rt_ms: Option<f64>,
    /// The first rules that act on it, by kind and id.
    rules: Vec<String>,
    /// Its breakers, in the order in which they are asked.
    breakers: Vec<Breaker>,
}

/// A breaker of a resource.
#[derive(Debug, Serialize)]
struct Breaker {
    rule: String,
    state: &'static str,
    /// Until the next probe, or until the present one must have ended; 0 when closed.
    left_ms: u64,
    opened_total: u32,
}

/// A connected process.
#[derive(Debug, Serialize)]
struct Client {
    tenant: String,
    pid: u32,
    uid: u32,
    name: String,
    door: &'static str,
    /// Why it has no seat, where it asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_seat: Option<String>,
    scope: String,
    held: u64,
}

impl Status {
    /// The status now, of the agent, the scopes and these tenants.
    pub fn of(context: &Agent, tenants: &[Named]) -> Self {
        let snapshot = context.control.snapshot();
        let default = &context.tenants.default_one().tenant;
        let facts = context.facts.lock().clone();
        Self {
            agent: AgentReport {
                version: env!("CARGO_PKG_VERSION"),
                uptime_s: context.started.elapsed().as_secs_f64(),
                tick_ms: context.tick.as_secs_f64() * 1e3,
                tick_late_p99_ms: snapshot.late_p99.as_secs_f64() * 1e3,
                ticks: snapshot.ticks,
                scheduling: snapshot.scheduling.name(),
                clock: snapshot.clock(),
                psi_triggers: psi_triggers(&snapshot),
                ebpf: Ebpf::of(context.kernel.as_ref().map(Telemetry::report).as_ref()),
                rules_generation: default.board().rules_generation(),
                pid: std::process::id(),
                directory: shown(&facts.directory),
                config: facts.config_file.as_deref().map(shown),
                rules: Rules::of(&facts, context.reload_succeeded()),
                metrics_listen: facts.metrics_listen,
                http_permits: HttpPermits::of(tenants, None),
                reload_refused: context.reload.refused(),
                turned_away: turned_away::by_bound(context),
            },
            scopes: scopes(&snapshot),
            resources: resources(tenants),
            clients: clients(tenants, &snapshot),
            warnings: Warnings::of(context, tenants, &snapshot),
        }
    }
}

fn psi_triggers(snapshot: &Snapshot) -> BTreeMap<&'static str, Trigger> {
    let states = snapshot.triggers.states.into_iter();
    let triggers = states.map(|state| Trigger {
        rung: state.map_or("none", TriggerForm::name),
        reason: state.err().map(|refusal| refusal.to_string()),
    });
    let names = Pressure::ALL.map(Pressure::name).into_iter();
    names.zip(triggers).collect()
}

/// The scopes, the host first.
pub fn scopes(snapshot: &Snapshot) -> Vec<Scope> {
    let (now_ns, all) = (snapshot.now_ns, &snapshot.scopes);
    let scopes = all.iter();
    scopes.map(|scope| Scope::of(scope, all, now_ns)).collect()
}

/// The resources of these tenants, in the order of their slots.
pub fn resources(tenants: &[Named]) -> Vec<Resource> {
    let of_tenant = |named: &Named| {
        let directory = named.tenant.directory();
        let all = directory.list().into_iter();
        let all = all.map(|(name, slot)| Resource::of(named, &name, slot));
        all.collect::<Vec<_>>()
    };
    tenants.iter().flat_map(of_tenant).collect()
}

fn clients(tenants: &[Named], snapshot: &Snapshot) -> Vec<Client> {
    let of_tenant = |named| clients_of(named, snapshot);
    tenants.iter().flat_map(of_tenant).collect()
}

fn clients_of(named: &Named, snapshot: &Snapshot) -> Vec<Client> {
    let tenant = &named.tenant;
    let clients = tenant.clients().list().into_iter();
    clients
        .map(|client| Client {
            tenant: named.name.to_string(),
            pid: client.who.pid,
            uid: client.who.uid,
            name: client.who.name.clone(),
            door: if client.who.seat.is_some() {
                "shm"
            } else {
                "socket"
            },
            no_seat: client.who.no_seat.clone(),
            scope: scope_name(snapshot, client.scope()),
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
    client.held().saturating_add(u64::from(seated))
}

impl Scope {
    fn of(scope: &ScopeSnapshot, all: &[ScopeSnapshot], now_ns: u64) -> Self {
        let published = &scope.published;
        let readings = scope.readings.iter();
        Self {
            name: scope.name.to_string(),
            cgroup: scope.cgroup.as_ref().map(|path| readable(path)),
            state: scope.published.state.name(),
            cause: scope.published.cause.name(),
            why: why(scope),
            refuses: refuses(scope),
            inflight: scope.counts.inflight,
            passed_total: scope.counts.passed,
            refused_total: scope.counts.refused,
            shed_total: scope.counts.shed,
            evidence: scope.published.evidence.names().collect(),
            course: Course {
                since_s: Duration::from_nanos(now_ns.saturating_sub(scope.since_ns)).as_secs_f64(),
                changes_total: scope.changes,
                demand: published.demand,
                healthy_ticks: [published.healthy_seen, published.healthy_needed],
                ineffective: published.ineffective,
                resting: published.resting,
            },
            signals: readings
                .map(|(id, reading)| (id.name(), Signal::of(id, reading)))
                .collect(),
            waiters: WaiterRung::of(&scope.readings).name(),
            threads: threads::of(scope),
            neighbour: Neighbour::of(scope, all),
            limits: Limits {
                inflight: inflight_limit(scope),
                allowed_qps: scope.published.allowed_qps,
                cutoff: scope.cutoff,
                load_mark: scope.load_mark,
                cpu_mark: scope.published.cpu_mark,
            },
        }
    }
}

/// The limit that holds now; `None` is no limit.
pub(super) fn inflight_limit(scope: &ScopeSnapshot) -> Option<u32> {
    let word = scope.published.word();
    let limit = match word.state {
        ScopeState::Healthy | ScopeState::Cold => word.entry,
        ScopeState::Overload => word.tight,
        ScopeState::Reject => 0,
    };
    (limit < ScopeWord::LIMIT_MAX).then_some(limit)
}

impl Resource {
    /// A resource by its slot.
    pub(super) fn of(named: &Named, name: &Arc<str>, slot: Slot) -> Self {
        let counts = named.tenant.seats().node_counts(slot);
        let breakers = named.tenant.breakers_of(name, slot, monotonic_ns());
        let kinds = RefusalKind::ALL.iter().zip(counts.refused);
        Self {
            tenant: named.name.to_string(),
            name: name.to_string(),
            passed_total: counts.passed,
            refused_total: kinds.map(|(kind, count)| (kind.name(), count)).collect(),
            inflight: counts.inflight,
            rt_ms: mean_ms(&counts),
            rules: first_rules(named, name),
            breakers: breakers.into_iter().map(Breaker::of).collect(),
        }
    }
}

fn first_rules(named: &Named, name: &str) -> Vec<String> {
    let limits = named.tenant.directory().limits();
    let placed = limits.of_resource(name).into_iter().take(RULES_MAX);
    placed
        .map(|placed| format!("{} {}", placed.rule.body.kind().name(), placed.rule.id))
        .collect()
}

impl Breaker {
    fn of(now: BreakerNow) -> Self {
        Self {
            state: now.state.name(),
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
