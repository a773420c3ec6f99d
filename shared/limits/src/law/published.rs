//! What the law says after a tick.

use tidegate_abi::board::{ScopeWord, SurgeWord};
use tidegate_abi::decision::{Cause, ScopeState};

use super::evidence::Evidence;
use super::number::milli_u64;
use super::settings::Enforcement;

/// How closely decisions watch the entry limit while a scope is not in overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Not at all: next to nothing is offered, or the scope is cold and its CPUs are not known.
    Rest,
    /// Now and then.
    Now,
    /// At each decision: in flight is at half the limit or more, or the limit is small.
    Each,
}

/// State, limits and reasons of a scope after a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, for people"
)]
pub struct PublishedLimits {
    /// What the scope does with inbound work.
    pub state: ScopeState,
    /// Why.
    pub cause: Cause,
    /// Whether decisions act on it.
    pub enforcement: Enforcement,
    /// Requests in flight whose resource a bulkhead holds. Limits and `held` are with them, as decisions count.
    pub capped: u32,
    /// Wide limit, requests: overload begins here.
    pub entry: u32,
    /// Tight limit, requests: overload admits below it. Never over `entry`.
    pub tight: u32,
    /// Whether a decision may take the CPU as short.
    pub short: bool,
    /// How closely decisions watch the entry limit.
    pub watch: Watch,
    /// Requests per second for callers that hold no permit; `None` is no limit.
    pub allowed_qps: Option<f64>,
    /// Requests in the service and at its door.
    pub held: u32,
    /// Growth of that, requests per second, from which on it is a surge; `None` = nothing is.
    pub surge_qps: Option<u32>,
    /// Whether shedding did not lower the pressure, so that only the entry limit is in force.
    pub ineffective: bool,
    /// CPU mark of this tick, a share of the CPUs: lower while there is trouble with garbage
    /// collection; `None` where the operator has none.
    pub cpu_mark: Option<f64>,
    /// What strains the scope beside its CPU: too many threads, or trouble with garbage collection. Rules that have a
    /// count for this take it.
    pub strain: Option<Cause>,
    /// What spoke for a short CPU.
    pub evidence: Evidence,
    /// Mean demand, as a share of the capacity.
    pub demand: f64,
    /// Capacity, requests per second; `None` before there is history.
    pub capacity_qps: Option<f64>,
    /// Response time without queueing, seconds; `None` before there is history.
    pub base_rt_s: Option<f64>,
    /// How long successes have been slow out of all proportion to the base, ns: an incident, of which nothing is
    /// learnt. 0 while there is none.
    pub incident_ns: u64,
    /// Healthy ticks in a row that end overload this time.
    pub healthy_needed: u32,
    /// Healthy ticks in a row that were seen.
    pub healthy_seen: u32,
    /// Whether it is an overload of requests that wait for others while the CPU is idle.
    pub waits: bool,
    /// Whether the overload has ended and stays, with the entry limit, for want of changes in the hour.
    pub resting: bool,
    /// Time until the hour has room again for a change that is withheld, ns: an overload rests, or a mark is passed and
    /// does not act. 0 while none is withheld.
    pub withheld_ns: u64,
}

impl PublishedLimits {
    /// What holds before the first tick: nothing is known, everything is admitted.
    pub const START: Self = Self {
        state: ScopeState::Cold,
        cause: Cause::None,
        enforcement: Enforcement::Enforce,
        capped: 0,
        entry: ScopeWord::LIMIT_MAX,
        tight: ScopeWord::LIMIT_MAX,
        short: false,
        watch: Watch::Rest,
        allowed_qps: None,
        held: 0,
        surge_qps: None,
        ineffective: false,
        cpu_mark: None,
        strain: None,
        evidence: Evidence::NONE,
        demand: 0.0,
        capacity_qps: None,
        base_rt_s: None,
        incident_ns: 0,
        healthy_needed: 0,
        healthy_seen: 0,
        waits: false,
        resting: false,
        withheld_ns: 0,
    };

    /// Whether decisions only count what they would refuse.
    pub fn observes(&self) -> bool {
        self.enforcement == Enforcement::Observe
    }

    /// The word that a decision reads.
    pub fn word(&self) -> ScopeWord {
        ScopeWord {
            state: self.state,
            short: self.short,
            near: self.watch == Watch::Each,
            observe: self.observes(),
            entry: if self.watch == Watch::Rest {
                ScopeWord::LIMIT_MAX
            } else {
                self.entry
            },
            tight: self.tight,
        }
    }

    /// What a surge is measured from until the next tick.
    pub fn surge(&self) -> SurgeWord {
        self.surge_qps
            .map_or(SurgeWord::NONE, |least_qps| SurgeWord {
                held: self.held,
                least_qps,
            })
    }

    /// Allowed QPS in thousandths as the scope record holds it; [`u64::MAX`] is no limit.
    pub fn allowed_qps_milli(&self) -> u64 {
        self.allowed_qps.map_or(u64::MAX, milli_u64)
    }
}
