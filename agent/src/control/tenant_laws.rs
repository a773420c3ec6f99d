//! What each tenant has learnt of the host for itself, where there are several.
//!
//! The law of the host sums what the ledgers of all tenants say, and a ledger may lie: whoever claims successes that
//! its CPU time cannot have done lifts the capacity of all. So the law also runs once for each tenant over what that
//! tenant did with the CPU time of its own groups, and a tenant gets the stricter of both words
//! ([`tidegate_limits::fairness::tenants::stricter`]). A lie lifts the liar's own limits at most.

use tidegate_abi::board::ScopeWord;
use tidegate_limits::law::{Kind, Law, Sample, Settings};
use tidegate_segment::ledger::ScopeCounts;

/// The laws of the tenants; none where there is one tenant.
#[derive(Debug)]
pub(super) struct TenantLaws(Vec<Law>);

/// What a tenant did in the host in a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Did {
    pub counts: ScopeCounts,
    /// Requests in flight whose resource a bulkhead holds.
    pub capped: u32,
    /// Share of the host's CPUs that its groups used; `None` = not known.
    pub own: Option<f64>,
}

impl TenantLaws {
    /// For so many tenants.
    pub(super) fn new(tenants: usize) -> Self {
        let laws = if tenants > 1 { tenants } else { 0 };
        Self((0..laws).map(|_tenant| Law::default()).collect())
    }

    /// Steps the law of a tenant with its part of the host's sample.
    pub(super) fn step(&mut self, tenant: usize, host: &Sample, did: &Did, settings: &Settings) {
        let Some(law) = self.0.get_mut(tenant) else {
            return;
        };
        let counts = &did.counts;
        law.step(
            &Sample {
                inflight: u32::try_from(counts.inflight).unwrap_or(u32::MAX),
                capped: did.capped,
                // Whose connections wait at the listeners of the host is not known; the law of all counts them.
                accept_queue: host.accept_queue.map(|_waiting| 0),
                successes: counts.success,
                rt_ns: counts.rt_ns,
                passed: counts.passed,
                one_shot: 0,
                shed: counts.shed,
                own: did.own,
                ..*host
            },
            settings,
        );
    }

    /// The word of the host as a tenant has it for itself; `None` where the law of all is the only one.
    pub(super) fn word(&self, tenant: usize, settings: &Settings) -> Option<ScopeWord> {
        let law = self.0.get(tenant)?;
        (settings.kind == Kind::Adaptive).then(|| law.published().word())
    }
}
