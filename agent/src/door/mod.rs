//! Doors: the ways by which a service reaches the gate.
//!
//! [`Doors::open`] places the sockets, [`Doors::serve`] answers on them until it is dropped. The gate
//! decides; a door only carries the question and the answer.

pub mod accept;
mod arguments;
pub mod bounds;
mod ending;
pub mod gate_socket;
pub mod http;
pub mod open_files;
pub mod peer;
pub mod settings;
pub mod socket_file;
pub mod socket_path;
pub mod tenants;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_abi::decision::Outcome;
use tidegate_segment::clock::monotonic_ns;
use tokio::runtime::{Builder, Runtime};
use tokio::time::MissedTickBehavior;

use crate::config::METRICS_HINT;
use crate::control::Handle;
use crate::ebpf::Telemetry;
use crate::telemetry::facts::Facts;
use crate::telemetry::reload::LastReading;
use crate::telemetry::scrape::Metrics;
use crate::telemetry::warnings::OfConfig;
use crate::tenant::scope_resolver::ScopeResolver;
use bounds::Bounds;
use gate_socket::{GateSocket, Offer};
use tenants::Tenants;

pub use settings::Settings;

/// How often it is told at most that permits were not given back.
const TELL_AGAIN: Duration = Duration::from_hours(1);

/// How often permits that ended by the clock are looked for.
const SWEEP: Duration = Duration::from_millis(500);

/// Most threads that answer. A decision takes less time than to hand it to another core.
const THREADS_MAX: usize = 4;

/// Why the doors could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be placed.
    #[error(transparent)]
    Path(#[from] socket_path::PathError),
    /// The metrics would be readable from other machines.
    #[error("http.metrics_listen = \"{0}\": is not a loopback address; {METRICS_HINT}")]
    Remote(SocketAddr),
    /// Nothing can listen at the address of the metrics.
    #[error(
        "http.metrics_listen = \"{address}\": cannot listen: {error}; choose another port (`--metrics-listen 127.0.0.1:9470`, \
         or the option), or none (`--metrics-listen off`)"
    )]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// What the doors serve from.
#[derive(Debug)]
pub struct Context {
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
    /// When the agent started.
    pub started: Instant,
    /// Time between two ticks.
    pub tick: Duration,
    /// A permit given over HTTP comes back after this time.
    pub permit_time_to_live: Duration,
    /// What is odd about the configuration in force.
    pub warnings: OfConfig,
    /// Where it has what from.
    pub facts: Box<Mutex<Facts>>,
    /// How the last reload of configuration and rules went.
    pub reload: LastReading,
}

impl Context {
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

/// Most threads that look up the scopes of those who connect. A look reads a file or two; in a storm of
/// connections the others wait their turn.
const LOOKERS_MAX: usize = 4;

/// The runtime that the doors run in.
///
/// # Errors
/// The system gives no threads or descriptors.
pub fn runtime() -> io::Result<Runtime> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(cpus.min(THREADS_MAX))
        .max_blocking_threads(LOOKERS_MAX)
        .thread_name("door")
        .enable_all()
        .build()
}

/// The doors, placed and listening. Nobody is answered before [`Doors::serve`].
#[derive(Debug)]
pub struct Doors {
    gate_socket: GateSocket,
    http: http::Listeners,
}

impl Doors {
    /// Places the sockets and makes room for their connections. Must run inside the runtime.
    ///
    /// # Errors
    /// Another agent owns the directory, something else lies there, or the system refuses.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        Ok(Self {
            gate_socket: GateSocket::open(settings)?,
            http: http::Listeners::open(settings)?,
        })
    }

    /// What connections and their users may take.
    pub const fn bounds(&self) -> &Arc<Bounds> {
        self.gate_socket.bounds()
    }

    /// Address of the metrics over TCP; `None` where they are off.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.http.metrics_address()
    }

    /// Lets services hand pages back before anybody is served, see [`GateSocket::gather`].
    pub async fn gather(&mut self, limit: Duration, look: impl FnMut(Offer) -> bool) {
        self.gate_socket.gather(limit, look).await;
    }

    /// Answers on all doors until it is dropped.
    pub async fn serve(self, context: Arc<Context>) {
        tokio::join!(
            self.gate_socket.serve(Arc::clone(&context)),
            self.http.serve(Arc::clone(&context)),
            end_timed_permits(context),
        );
    }
}

/// Gives back the permits of HTTP clients that ended by the clock.
async fn end_timed_permits(context: Arc<Context>) {
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told: Option<Instant> = None;
    loop {
        sweep.tick().await;
        let mut many = 0_usize;
        for named in context.tenants.iter() {
            let tenant = &named.tenant;
            let ended = tenant.timed_permits().lock().take_ended(monotonic_ns());
            many = many.saturating_add(ended.len());
            for pass in ended {
                tenant.exit(pass, Outcome::Ignore);
            }
        }
        if many > 0 && told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            told = Some(Instant::now());
            tracing::warn!(
                permits = many,
                "permits by HTTP were not given back and ended by the clock (http.permit_time_to_live); \
                 until then each was in flight: send each to POST /v1/exit"
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use tidegate_abi::geometry::Geometry;

    use super::*;
    use crate::control::{Driver, Plan};
    use crate::procfs::Roots;
    use crate::signal::Sampler;
    use crate::tenant::Tenant;
    use crate::tenant::scope_resolver::HostAlone;
    use socket_path::Access;

    /// Doors in a directory, without metrics over TCP.
    pub(crate) fn settings(directory: &Path) -> Settings {
        Settings {
            directory: directory.to_owned(),
            access: Access {
                group: None,
                mode: 0o660,
            },
            hello_deadline: Duration::from_secs(10),
            metrics_listen: None,
            metrics_hosts: Vec::new(),
        }
    }

    impl Context {
        /// The pages of all who belong to no tenant of the configuration.
        pub(crate) fn default_tenant(&self) -> &Arc<Tenant> {
            &self.tenants.default_one().tenant
        }
    }

    /// A context whose control loop has not ticked yet.
    pub(crate) fn context() -> Arc<Context> {
        context_for(4096)
    }

    /// The same with room for so many connections.
    pub(crate) fn context_for(connections_max: usize) -> Arc<Context> {
        let tenant = crate::tenant::tests::tenant(Geometry::new(64, 4, 2, 2).unwrap());
        let sampler = Sampler::new(Roots::default());
        let (_driver, control) = Driver::new(sampler, Vec::new(), Plan::default());
        Arc::new(Context {
            tenants: Tenants::one(Arc::new(tenant)),
            bounds: Arc::new(Bounds::new(connections_max)),
            scopes: Arc::new(HostAlone),
            control: Arc::new(control),
            kernel: None,
            metrics: Arc::new(Metrics::new().unwrap()),
            started: Instant::now(),
            tick: Duration::from_millis(100),
            permit_time_to_live: Duration::from_mins(1),
            warnings: OfConfig::default(),
            facts: Box::default(),
            reload: LastReading::default(),
        })
    }
}
