//! The agent in the middle: which tenants there are, what callers may take, and how all of it is.
//!
//! Doors answer from it and reports are made of it, so neither knows the other.

pub mod bounds;
pub mod peer;
pub mod tenants;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::control::Handle;
use crate::ebpf::Telemetry;
use crate::event::book::EventBook;
use crate::telemetry::config_warnings::ConfigWarnings;
use crate::telemetry::facts::Facts;
use crate::telemetry::reload::LastReading;
use crate::telemetry::scrape::Metrics;
use crate::tenant::scope_resolver::ScopeResolver;
use bounds::Bounds;
use tenants::Tenants;

/// The agent as doors and reports see it: its tenants, and how it is.
#[derive(Debug)]
pub struct AgentState {
    /// Every pair of pages, and who belongs to which.
    pub tenants: Tenants,
    /// What callers may take.
    pub bounds: Arc<Bounds>,
    /// Finds the scope of a process that connects.
    pub scopes: Arc<dyn ScopeResolver>,
    /// The control loop: how the scopes are.
    pub control: Arc<Handle>,
    /// Programs in the kernel; `None` if there was no thread left for them.
    pub kernel: Option<Telemetry>,
    /// Metrics that live between scrapes.
    pub metrics: Arc<Metrics>,
    /// What has happened.
    pub events: Arc<EventBook>,
    /// When the agent started.
    pub started: Instant,
    /// Time between two ticks.
    pub tick: Duration,
    /// A permit given over HTTP comes back after this time.
    pub permit_time_to_live: Duration,
    /// Longest wait of a caller over a socket for a rule that lets wait.
    pub max_wait: Duration,
    /// What is odd about the configuration in force.
    pub warnings: ConfigWarnings,
    /// Where it has what from.
    pub facts: Box<Mutex<Facts>>,
    /// How the last reload of configuration and rules went.
    pub reload: LastReading,
}

impl AgentState {
    /// Takes down that a reload of configuration and rules was taken over.
    pub fn take_reload(&self) {
        self.reload.succeed();
        self.metrics.note_reload();
    }

    /// Whether the last reload was taken over; true before the first.
    pub fn reload_succeeded(&self) -> bool {
        self.reload.succeeded()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tidegate_abi::geometry::Geometry;

    use super::*;
    use crate::control::{Driver, Plan};
    use crate::procfs::Roots;
    use crate::signal::Sampler;
    use crate::tenant::Tenant;
    use crate::tenant::scope_resolver::HostAlone;

    impl AgentState {
        /// The pages of all who belong to no tenant of the configuration.
        pub(crate) fn default_tenant(&self) -> &Arc<Tenant> {
            &self.tenants.default_one().tenant
        }
    }

    /// An agent whose control loop has not ticked yet.
    pub(crate) fn agent() -> Arc<AgentState> {
        agent_for(4096)
    }

    /// The same where a caller waits for this time at most.
    pub(crate) fn agent_that_waits(max_wait: Duration) -> Arc<AgentState> {
        let agent = agent_for(4096);
        let agent = Arc::into_inner(agent).unwrap();
        Arc::new(AgentState { max_wait, ..agent })
    }

    /// The same with room for so many connections.
    pub(crate) fn agent_for(connections_max: usize) -> Arc<AgentState> {
        let tenant = crate::tenant::tests::tenant(Geometry::new(64, 4, 2, 2).unwrap());
        let sampler = Sampler::new(Roots::default());
        let (_driver, control) = Driver::new(sampler, Vec::new(), Plan::default());
        Arc::new(AgentState {
            tenants: Tenants::one(Arc::new(tenant)),
            bounds: Arc::new(Bounds::new(connections_max)),
            scopes: Arc::new(HostAlone),
            control: Arc::new(control),
            kernel: None,
            metrics: Arc::new(Metrics::new().unwrap()),
            events: Arc::new(EventBook::new(Duration::ZERO)),
            started: Instant::now(),
            tick: Duration::from_millis(100),
            permit_time_to_live: Duration::from_mins(1),
            max_wait: Duration::from_secs(10),
            warnings: ConfigWarnings::default(),
            facts: Box::default(),
            reload: LastReading::default(),
        })
    }
}
