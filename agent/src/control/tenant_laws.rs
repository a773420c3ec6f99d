//! What each tenant has learnt of the host for itself, where there are several.
//!
//! The law of the host sums what the ledgers of all tenants say, and a ledger may lie: whoever claims successes that
//! its CPU time cannot have done lifts the capacity of all. So the law also runs once for each tenant over what that
//! tenant did with the CPU time of its own groups, and a tenant gets the stricter of both words
//! ([`tidegate_limits::fairness::tenants::stricter`]). A lie lifts the liar's own limits at most.

use tidegate_abi::board::ScopeWord;
use tidegate_limits::fairness::tenants;
use tidegate_limits::law::{Law, LawChoice, Sample};

use super::counts::Counts;
use super::held_nodes::capped;
use super::pages::TenantPages;
use super::request::HeldResource;
use super::scope::Scope;
use super::services_cpu::ServicesCpu;
use crate::signal::Sampler;
use crate::tenant::HOST;

/// The laws of the tenants; none where there is one tenant.
#[derive(Debug)]
pub(super) struct TenantLaws(Vec<Law>);

/// What the laws of the tenants are stepped with.
#[derive(Debug)]
pub(super) struct AllTenants<'a> {
    pub pages: &'a [TenantPages],
    pub held: &'a [HeldResource],
    pub counts: &'a Counts,
    pub services: &'a ServicesCpu,
    pub sampler: &'a Sampler,
    pub scopes: &'a [Option<Scope>],
}

impl TenantLaws {
    /// For so many tenants.
    pub(super) fn new(tenants: usize) -> Self {
        let laws = if tenants > 1 { tenants } else { 0 };
        Self((0..laws).map(|_tenant| Law::default()).collect())
    }

    /// Steps the law of each tenant with its part of the host's sample, after the law of all.
    pub(super) fn step_all(&mut self, all: &AllTenants<'_>) {
        let Some(Some(host)) = all.scopes.first() else {
            return;
        };
        for (tenant, law) in self.0.iter_mut().enumerate() {
            let counts = all.counts.of_tenant(tenant);
            let sample = Sample {
                inflight: u32::try_from(counts.inflight).unwrap_or(u32::MAX),
                capped: capped(all.pages, all.held, HOST, Some(tenant)),
                // Whose connections wait at the listeners of the host is not known; the law of all counts them.
                accept_queue: host.sample().accept_queue.map(|_waiting| 0),
                successes: counts.success,
                rt_ns: counts.rt_ns,
                passed: counts.passed,
                one_shot: 0,
                shed: counts.shed,
                own: all.services.share_of(tenant, all.sampler, all.scopes),
                ..*host.sample()
            };
            law.step(&sample, &host.settings);
        }
    }

    /// The word of a scope as a tenant gets it, beside so many requests of others.
    pub(super) fn word_for(
        &self,
        tenant: usize,
        (scope, word): (u32, ScopeWord),
        beside: u32,
        scopes: &[Option<Scope>],
    ) -> ScopeWord {
        let host = scopes.first().and_then(Option::as_ref);
        let adaptive = host.is_some_and(|host| host.settings.kind == LawChoice::Adaptive);
        match self.0.get(tenant) {
            Some(law) if scope == HOST && adaptive => {
                tenants::stricter(word, law.published().word(), beside)
            }
            Some(_) | None => word,
        }
    }
}
