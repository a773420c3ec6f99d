//! How much of the host's CPUs the services used that ask the gate.
//!
//! Whatever else the host runs is a neighbour of theirs. The capacity of the host is what its services can do, so
//! it is reckoned from their CPU time; that of everybody would make a host with a busy neighbour look slow, and refuse
//! work that the neighbour would have made room for. A service is as large as its group, as it is in its own scope.
//!
//! It is not known while a caller is about whose group is not watched: then the host's whole use stands for it.

use tidegate_abi::signal::SignalId;

use super::counts::Counts;
use super::group_path::is_below;
use super::pages::TenantPages;
use super::scope::{Place, Scope};
use super::tick_time::TickTime;
use crate::signal::Sampler;
use crate::tenant::HOST;

/// A mean of admitted requests in a tick under this is none lately.
const NONE_LATELY: f64 = 0.1;

/// Follows which groups have services.
#[derive(Debug)]
pub(super) struct ServicesCpu {
    /// Those of each tenant.
    tenants: Vec<Served>,
    /// Those of all.
    all: Served,
    /// The agent's own process, whose seats are those of callers over sockets.
    agent: u32,
}

/// Which groups have services of a tenant, or of all.
#[derive(Debug)]
struct Served {
    /// Whether a scope has one, in the order of the scopes.
    scopes: Box<[bool]>,
    /// Time until a caller out of sight is forgotten by the law's history as well, ns.
    out_of_sight_ns: u64,
}

impl ServicesCpu {
    /// For so many tenants and scopes.
    pub(super) fn new(tenants: usize, scopes: usize) -> Self {
        Self {
            tenants: (0..tenants).map(|_tenant| Served::new(scopes)).collect(),
            all: Served::new(scopes),
            agent: std::process::id(),
        }
    }

    /// Looks at who is seated, each tick.
    pub(super) fn look(&mut self, pages: &[TenantPages], counts: &Counts, time: &TickTime) {
        self.all.begin(time.length_ns);
        for ((tenant, page), own) in pages.iter().enumerate().zip(&mut self.tenants) {
            own.begin(time.length_ns);
            let board = page.writer.board();
            let ticks = counts.seats_of(tenant);
            for (seat, tick) in (0..board.seats_used()).zip(ticks) {
                if !board.seat(seat).live {
                    continue;
                }
                let scope = board.seat_scope(seat);
                // The agent's seat in the host is there for good, whether anybody asks or not.
                let agents = board.seat_info(seat).map(|info| info.pid) == Some(self.agent);
                let asks = tick.held > 0 || tick.asked.passed >= NONE_LATELY;
                for served in [&mut *own, &mut self.all] {
                    served.take(scope, asks || !agents, time);
                }
            }
        }
    }

    /// Share of the host's CPUs that the services of all used; `None` is not known.
    pub(super) fn share(&self, sampler: &Sampler, scopes: &[Option<Scope>]) -> Option<f64> {
        self.all.share(sampler, scopes)
    }

    /// The same of a tenant's services.
    pub(super) fn share_of(
        &self,
        tenant: usize,
        sampler: &Sampler,
        scopes: &[Option<Scope>],
    ) -> Option<f64> {
        self.tenants.get(tenant)?.share(sampler, scopes)
    }
}

impl Served {
    fn new(scopes: usize) -> Self {
        Self {
            scopes: vec![false; scopes].into(),
            out_of_sight_ns: 0,
        }
    }

    /// Takes a seat in a scope into account; `shows` = a service is behind it.
    fn take(&mut self, scope: u32, shows: bool, time: &TickTime) {
        if scope == HOST {
            if shows {
                self.out_of_sight_ns = time.history_ns();
            }
        } else if let Some(served) = self.scopes.get_mut(scope as usize) {
            *served = true;
        }
    }

    /// A look begins.
    fn begin(&mut self, length_ns: u64) {
        self.scopes.fill(false);
        self.out_of_sight_ns = self.out_of_sight_ns.saturating_sub(length_ns);
    }

    fn share(&self, sampler: &Sampler, scopes: &[Option<Scope>]) -> Option<f64> {
        if self.out_of_sight_ns > 0 {
            return None;
        }
        let (mut used, mut any) = (0.0, false);
        for place in self.places(scopes) {
            let Some(group) = sampler.group(place.key) else {
                continue;
            };
            // What a group uses is in the use of those above it.
            if self
                .places(scopes)
                .any(|above| is_below(&place.path, &above.path))
            {
                continue;
            }
            let readings = group.readings();
            used += readings.value(SignalId::Cpu)? * readings.value(SignalId::EffectiveCpus)?;
            any = true;
        }
        let cpus = sampler.host().value(SignalId::EffectiveCpus)?;
        any.then(|| (used / cpus).min(1.0))
    }

    /// The groups that have services.
    fn places<'a>(&'a self, scopes: &'a [Option<Scope>]) -> impl Iterator<Item = &'a Place> {
        let scopes = scopes.iter().zip(&self.scopes);
        let served = scopes.filter(|(_scope, served)| **served);
        served.filter_map(|(scope, _served)| scope.as_ref()?.group.as_ref())
    }
}
