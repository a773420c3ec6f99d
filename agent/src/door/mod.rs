//! Doors: the ways by which a service reaches the gate.
//!
//! [`Doors::open`] places the sockets, [`Doors::serve`] answers on them until it is dropped. The gate
//! decides; a door only carries the question and the answer.

pub mod accept;
mod arguments;
mod ending;
pub mod gate_socket;
pub mod handed;
pub mod http;
pub mod kind;
pub mod membership;
pub mod offer;
pub mod open_error;
pub mod open_files;
pub mod settings;
pub mod socket_file;
pub mod socket_path;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_abi::decision::Outcome;
use tidegate_segment::clock::monotonic_ns;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::host::AgentState;
use crate::host::bounds::{Bounds, GATE_CONNECTIONS};
use offer::Offer;

pub use kind::{Door, DoorKind};
pub use open_error::OpenError;
pub use settings::DoorSettings;

/// How often it is told at most that permits were not given back.
const TELL_AGAIN: Duration = Duration::from_hours(1);

/// How often permits that ended by the clock are looked for.
const SWEEP: Duration = Duration::from_millis(500);

/// Most threads that answer. A decision takes less time than to hand it to another core.
const THREADS_MAX: usize = 4;

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

/// Every kind of door. A new one is a folder and its line here.
pub const DOORS: &[DoorKind] = &[gate_socket::DOOR, http::DOOR];

/// The first of the agent's sockets that is not in a directory.
pub fn missing_socket(directory: &Path) -> Option<&'static str> {
    let mut names = DOORS.iter().map(|door| door.file_name);
    names.find(|name| !socket_file::is_socket(directory, name))
}

/// The doors, placed and listening. Nobody is answered before [`Doors::serve`].
#[derive(Debug)]
pub struct Doors {
    doors: Vec<Box<dyn Door>>,
    bounds: Arc<Bounds>,
}

impl Doors {
    /// Places the sockets and makes room for their connections. Must run inside the runtime.
    ///
    /// # Errors
    /// Another agent owns the directory, something else lies there, or the system refuses.
    pub fn open(settings: &DoorSettings) -> Result<Self, OpenError> {
        let bounds = Arc::new(Bounds::new(open_files::connections(GATE_CONNECTIONS)));
        let doors = DOORS.iter().map(|kind| (kind.open)(settings, &bounds));
        Ok(Self {
            doors: doors.collect::<Result<_, _>>()?,
            bounds,
        })
    }

    /// What connections and their users may take.
    pub const fn bounds(&self) -> &Arc<Bounds> {
        &self.bounds
    }

    /// Address of the metrics over TCP; `None` where they are off.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.doors.iter().find_map(|door| door.metrics_address())
    }

    /// Lets services hand pages back before anybody is served, see [`Door::gather`].
    pub async fn gather(&mut self, limit: Duration, mut look: impl FnMut(Offer) -> bool) {
        for door in &mut self.doors {
            door.gather(limit, &mut look).await;
        }
    }

    /// Answers on all doors until it is dropped.
    pub async fn serve(self, agent: Arc<AgentState>) {
        let mut serving = JoinSet::new();
        for door in self.doors {
            serving.spawn(door.serve(Arc::clone(&agent)));
        }
        serving.spawn(end_timed_permits(Arc::clone(&agent)));
        serving.spawn(set_permits_aside(Arc::clone(&agent)));
        serving.spawn(membership::follow(agent));
        // A door that ends takes nobody else with it.
        while serving.join_next().await.is_some() {}
    }
}

/// Gives back the permits of HTTP clients that ended by the clock.
async fn end_timed_permits(context: Arc<AgentState>) {
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

/// Sets permits of users aside that hold for long what others ask for.
async fn set_permits_aside(context: Arc<AgentState>) {
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told: Option<Instant> = None;
    loop {
        sweep.tick().await;
        let mut many = 0_u32;
        for named in context.tenants.iter() {
            let aside = named
                .tenant
                .set_aside(&context.bounds.scope_users, monotonic_ns());
            many = many.saturating_add(aside);
        }
        if many > 0 && told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            told = Some(Instant::now());
            tracing::warn!(
                event = "permits_set_aside",
                permits = many,
                "permits of a user were held for long while another user was refused for them; they no longer count in \
                 the limit of their scope: give each back when its request ends"
            );
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use socket_path::Access;

    /// Doors in a directory, without metrics over TCP.
    pub(crate) fn settings(directory: &Path) -> DoorSettings {
        DoorSettings {
            directory: directory.to_owned(),
            handed: handed::HandedSockets::default(),
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
