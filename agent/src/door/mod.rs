//! Doors: the ways by which a service reaches the gate.
//!
//! [`Doors::open`] places the sockets, [`Doors::serve`] answers on them until it is dropped. The gate
//! decides; a door only carries the question and the answer.

pub mod accept;
mod arguments;
mod ending;
pub mod gate_socket;
pub mod http;
pub mod membership;
pub mod open_files;
pub mod settings;
pub mod socket_file;
pub mod socket_path;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_abi::decision::Outcome;
use tidegate_segment::clock::monotonic_ns;
use tokio::runtime::{Builder, Runtime};
use tokio::time::MissedTickBehavior;

use crate::config::METRICS_HINT;
use crate::host::Agent;
use crate::host::bounds::Bounds;
use gate_socket::{GateSocket, Offer};

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
    pub async fn serve(self, context: Arc<Agent>) {
        tokio::join!(
            self.gate_socket.serve(Arc::clone(&context)),
            self.http.serve(Arc::clone(&context)),
            end_timed_permits(Arc::clone(&context)),
            membership::follow(context),
        );
    }
}

/// Gives back the permits of HTTP clients that ended by the clock.
async fn end_timed_permits(context: Arc<Agent>) {
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
            for permit in ended {
                tenant.exit(permit, Outcome::Ignore);
            }
        }
        if many > 0 && told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            told = Some(Instant::now());
            tracing::warn!(
                event = "permits_expired",
                permits = many,
                "permits given over HTTP were not given back and expired (http.permit_time_to_live); until then each \
                 counted as in flight: send each to POST /v1/exit"
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
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
}
