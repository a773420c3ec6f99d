//! The shape of `tidegate status --json` and `GET /v1/status`, which scripts rely on. The agent writes it, and the
//! subcommands read it.

mod now;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::ListedWord;
use super::ebpf::{EbpfReport, NeighbourReport};
use super::facts::{HttpPermitsReport, RulesReport};
use super::signal::SignalReport;
use super::threads::ThreadsReport;
use super::verdict::VerdictReport;
use super::warnings::WarningsReport;
use crate::telemetry::reload::RefusedReload;

pub use now::{resources, scopes};

/// Everything. What an older agent does not tell has its default.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusReport {
    /// How this host is, in one sentence; null before the first tick.
    pub verdict: Option<VerdictReport>,
    /// The agent itself.
    pub agent: AgentReport,
    /// The host first.
    pub scopes: Vec<ScopeReport>,
    /// Scopes of the configuration that protect nothing, since no group is there for them.
    #[serde(default)]
    pub scopes_without_group: Vec<WithoutGroupReport>,
    /// In the order of their slots.
    pub resources: Vec<ResourceReport>,
    /// Connected processes.
    pub clients: Vec<ClientReport>,
    /// What is odd about configuration and rules, but taken: above all what has no effect.
    pub warnings: WarningsReport,
}

/// The agent itself.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentReport {
    /// Version of the program.
    pub version: ListedWord,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Time between two ticks, ms.
    pub tick_ms: f64,
    /// How late 99 of 100 ticks come at most, ms.
    pub tick_late_p99_ms: Option<f64>,
    /// Ticks so far.
    pub ticks: u64,
    /// How the kernel schedules the sampler thread.
    pub scheduling: ListedWord,
    /// Where the time comes from.
    pub clock: ListedWord,
    /// What can make a tick come early, by what tasks wait for.
    pub psi_triggers: BTreeMap<ListedWord, TriggerReport>,
    /// Programs in the kernel.
    pub ebpf: Box<EbpfReport>,
    /// Generation of the rules on the board of the default tenant.
    pub rules_generation: u64,
    /// Process id.
    pub pid: u32,
    /// Directory of the sockets.
    pub directory: String,
    /// The configuration; null are the defaults.
    pub config: Option<String>,
    /// Where the rules in force are from; always there but from an older agent.
    pub rules: Option<RulesReport>,
    /// Where metrics are served over TCP; null is nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Permits given over HTTP.
    pub http_permits: HttpPermitsReport,
    /// How the last reload of configuration and rules was refused; null if it was taken over.
    pub reload_refused: Option<RefusedReload>,
    /// Callers that found no place, by what they asked for; what nobody was refused is left out.
    pub turned_away: BTreeMap<ListedWord, u64>,
    /// A socket of the agent that is not where it was made, so that nobody new can connect there; null is none.
    pub missing_socket: Option<ListedWord>,
    /// How the pages of each tenant began.
    pub pages: Vec<PagesReport>,
}

/// How the pages of a tenant began.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PagesReport {
    /// Whose they are.
    pub tenant: String,
    /// `new`, `taken_up` from the agent's last life, or `anew`: then windows and breakers are not those of before.
    pub begun: ListedWord,
    /// Living processes with a seat on pages of an earlier life.
    pub earlier_services: usize,
    /// What they have in flight there, which counts here.
    pub earlier_inflight: u64,
}

/// A pressure trigger: its form, or why there is none.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerReport {
    /// Form of the trigger, or `none`.
    pub rung: ListedWord,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A scope.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeReport {
    /// Its name.
    pub name: String,
    /// Path below the mount of the cpu controller; null for the host.
    pub cgroup: Option<String>,
    /// Word for its state.
    pub state: ListedWord,
    /// Word for what the state is because of.
    pub cause: ListedWord,
    /// Why, and whom it refuses, in a sentence; null while nothing is wrong.
    pub why: Option<String>,
    /// Whether a request that comes now may be refused by it.
    pub refuses: bool,
    /// Permits in flight.
    pub inflight: u64,
    /// Requests that passed.
    pub passed_total: u64,
    /// For any reason.
    pub refused_total: u64,
    /// By the scope itself.
    pub shed_total: u64,
    /// `enforce`, or `observe`: it refuses nothing.
    pub mode: ListedWord,
    /// Requests that found its limits reached while it only observed.
    pub observed_total: u64,
    /// What says that the CPU is short now.
    pub evidence: Vec<ListedWord>,
    /// Where it stands on the way to the next state.
    pub course: Option<CourseReport>,
    /// By name.
    pub signals: BTreeMap<ListedWord, SignalReport>,
    /// CPUs that the configuration declares for it; null where it is measured what its group may use.
    pub declared_cpus: Option<DeclaredCpusReport>,
    /// Where the number of tasks that wait for a CPU comes from.
    pub waiters: ListedWord,
    /// Its threads by what their names begin with, those that used most CPU; none of the host.
    pub threads: Vec<ThreadsReport>,
    /// Who takes the CPU from it most often; null if nobody does, or nothing tells it.
    pub neighbour: Option<NeighbourReport>,
    /// What holds now.
    pub limits: LimitsReport,
}

/// A scope of the configuration without a group.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WithoutGroupReport {
    /// Its name.
    pub name: String,
    /// Where there is none; `*` and `?` match names.
    pub cgroup: String,
    /// Whether one group is meant, and not all that fit.
    pub one_group: bool,
    /// What to do to have one.
    pub remedy: String,
    /// The same in words.
    pub text: String,
}

/// CPUs that the configuration declares for a scope.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredCpusReport {
    /// How many.
    pub cpus: f64,
    /// What its group may use; null where that is not measured.
    pub allowed: Option<f64>,
    /// Whether the two differ.
    pub conflict: bool,
    /// The same in words.
    pub text: String,
}

/// Where a scope stands in the state machine of the law.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CourseReport {
    /// Seconds since the state changed.
    pub since_s: f64,
    /// Changes of state so far.
    pub changes_total: u64,
    /// Mean demand, as a share of the capacity; overload ends under `[law.release] demand_under_ratio`.
    pub demand: f64,
    /// Seconds since its successes take over ten times the base response time: nothing is learnt of them. Null while
    /// they do not.
    pub incident_s: Option<f64>,
    /// Response time without queueing, ms; null before there is history.
    pub base_rt_ms: Option<f64>,
    /// Healthy ticks in a row so far, and those that end an overload.
    pub healthy_ticks: [u32; 2],
    /// Shedding did not lower the pressure: only the entry limit is in force.
    pub ineffective: bool,
    /// The overload has ended and stays, with the entry limit, for want of changes in this hour.
    pub resting: bool,
    /// Seconds until the hour has room again for a change of state that is withheld now; 0 where none is.
    pub withheld_s: f64,
}

/// The limits of a scope.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsReport {
    /// The limit that holds now: tight in overload, wide otherwise; null is no limit.
    pub inflight: Option<u32>,
    /// Requests a second of callers that hold no permit; null is no limit.
    pub allowed_qps: Option<f64>,
    /// Level from which requests are cut, 0 to 383, the most important lowest; null is none.
    pub cutoff: Option<u32>,
    /// Mark on the load average of all CPUs; null is no mark.
    pub load_mark: Option<f64>,
    /// CPU mark that holds now: lower while garbage collection is in trouble; null is no mark.
    pub cpu_mark: Option<f64>,
}

/// A resource.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceReport {
    /// Whose it is; empty for the default one of an older agent.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// Requests that passed.
    pub passed_total: u64,
    /// By kind of rule.
    pub refused_total: BTreeMap<ListedWord, u64>,
    /// Permits in flight.
    pub inflight: u64,
    /// Requests in flight that a bulkhead holds it to; null while none does.
    pub bulkhead: Option<u32>,
    /// Mean response time of all that ended well; null before the first.
    pub rt_ms: Option<f64>,
    /// The first rules that act on it, by kind and id.
    pub rules: Vec<String>,
    /// Its breakers, in the order in which they are asked.
    pub breakers: Vec<BreakerReport>,
}

/// A breaker of a resource.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerReport {
    /// Its rule.
    pub rule: String,
    /// Word for its state.
    pub state: ListedWord,
    /// Until the next probe, or until the present one must have ended; 0 when closed.
    pub left_ms: u64,
    /// Times it has opened.
    pub opened_total: u32,
}

/// A connected process.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientReport {
    /// Whose it is; empty for the default one of an older agent.
    pub tenant: String,
    /// Process id.
    pub pid: u32,
    /// User id.
    pub uid: u32,
    /// Its name.
    pub name: String,
    /// How it reaches the gate: `shm` or `socket`.
    pub door: ListedWord,
    /// Why it has no seat, where it asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_seat: Option<String>,
    /// Its scope.
    pub scope: String,
    /// Inbound permits that it holds.
    pub held: u64,
}

impl ResourceReport {
    /// Refused for any reason.
    pub fn refused(&self) -> u64 {
        let counts = self.refused_total.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}
