//! The HTTP door: JSON on a Unix socket, and the metrics on a loopback TCP port.
//!
//! `exchange` reads what is sent within its bounds, `caller` says who asks, `fields` reads what is asked and `input` checks it, `decide` has
//! the routes that decide, `report` those that tell from the texts of `reports`, for which one waits in a `line`, `answer` the bodies of refusals and errors, `connection` the time that one may stand
//! still. Of the TCP port, `scrapers` has the listener, `crowd` the places of its connections, `scrape_port` what a request passes there,
//! `host` the names that it may ask for, `turned` what is turned away.

mod answer;
mod caller;
mod connection;
mod crowd;
mod decide;
mod exchange;
mod fields;
mod host;
mod input;
mod line;
mod report;
mod reports;
mod scrape_port;
mod scrapers;
mod turned;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::{Method, Uri};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use rustix::net::SocketType;
use tokio::net::{TcpListener, UnixListener};

use super::kind::{Door, DoorKind, Working};
use super::open_error::OpenError;
use super::settings::DoorSettings;
use super::socket_file::SocketFile;
use crate::host::AgentState;
use answer::Routes;
use caller::Callers;
use reports::{Report, Reports};
use scrape_port::ScrapePort;
use scrapers::Scrapers;
use turned::Turned;

/// Name of the socket in the directory of the sockets.
pub const FILE_NAME: &str = tidegate_abi::place::HTTP_SOCKET;

/// Connections that may wait to be accepted; the kernel takes less where `net.core.somaxconn` is less.
const BACKLOG: i32 = 1024;

/// This kind of door.
pub const DOOR: DoorKind = DoorKind {
    file_name: FILE_NAME,
    open: |settings, _bounds| Ok(Box::new(Listeners::open(settings)?)),
};

/// The HTTP door, placed and listening.
#[derive(Debug)]
pub struct Listeners {
    unix: UnixListener,
    file: Box<SocketFile<UnixListener>>,
    metrics: Option<TcpListener>,
    metrics_hosts: Vec<String>,
}

impl Listeners {
    /// Places the Unix socket and listens for scrapes. Must run inside the runtime.
    ///
    /// # Errors
    /// Something lies at the path, the address is not a loopback one or is taken, or the system
    /// refuses.
    pub fn open(settings: &DoorSettings) -> Result<Self, OpenError> {
        let kind = (SocketType::STREAM, BACKLOG);
        let take = |socket: OwnedFd| UnixListener::from_std(socket.into());
        let (file, unix) = SocketFile::place(settings, FILE_NAME, kind, take)?;
        let metrics = settings.metrics_listen.map(|address| {
            if !address.ip().is_loopback() {
                return Err(OpenError::Remote(address));
            }
            listen(address).map_err(|error| OpenError::Metrics { address, error })
        });
        Ok(Self {
            unix,
            file,
            metrics: metrics.transpose()?,
            metrics_hosts: settings.metrics_hosts.clone(),
        })
    }

    async fn answer(self, context: Arc<AgentState>) {
        let reports = Extension(Reports::new(Arc::clone(&context)));
        if let Some(metrics) = self.metrics {
            let turned = Turned::new(Arc::clone(&context.metrics));
            let hosts = self.metrics_hosts;
            let port = ScrapePort::new(hosts, Arc::clone(&turned));
            let routes = router(told_to_all()).layer(reports.clone());
            let routes = port.before(routes.with_state(Arc::clone(&context)));
            let scrapers = Scrapers::new(metrics, Arc::clone(&context), turned);
            tokio::spawn(scrapers.serve(routes));
        }
        let routes = router(told_to_callers()).layer(reports);
        let routes = routes.with_state(Arc::clone(&context));
        Callers::new(self.unix, self.file, context)
            .serve(routes)
            .await;
    }
}

impl Door for Listeners {
    fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    fn serve(self: Box<Self>, agent: Arc<AgentState>) -> Working<'static> {
        Box::pin(self.answer(agent))
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// A path and what answers there.
struct Route {
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<Arc<AgentState>>,
}

fn asked(path: &'static str, handler: MethodRouter<Arc<AgentState>>) -> Route {
    Route {
        method: "GET",
        path,
        handler,
    }
}

fn sent(path: &'static str, handler: MethodRouter<Arc<AgentState>>) -> Route {
    Route {
        method: "POST",
        path,
        handler,
    }
}

/// What everybody on the host may read.
fn told_to_all() -> Vec<Route> {
    vec![
        asked("/metrics", get(report::metrics)),
        asked("/healthz", get(report::healthz)),
        asked("/readyz", get(report::readyz)),
    ]
}

fn told_to_callers() -> Vec<Route> {
    let own = vec![
        sent("/v1/enter", post(decide::enter)),
        sent("/v1/exit", post(decide::exit)),
        asked("/v1/admit", get(decide::admit)),
        asked("/v1/status", report::told(Report::Status)),
        asked("/v1/scopes", report::told(Report::Scopes)),
        asked("/v1/resources", report::told(Report::Resources)),
        asked("/v1/explain", get(report::explain)),
        asked("/v1/rules", report::told(Report::Rules)),
        asked("/v1/events", get(report::events)),
    ];
    own.into_iter().chain(told_to_all()).collect()
}

/// Answers on these routes, and says in JSON what there is to who asks for another one.
fn router(routes: Vec<Route>) -> Router<Arc<AgentState>> {
    let there = routes.iter().map(|route| (route.path, route.method));
    let there = Arc::new(there.collect::<Routes>());
    let elsewhere = Arc::clone(&there);
    let on_paths = routes.into_iter().fold(Router::new(), |router, route| {
        router.route(route.path, route.handler)
    });
    on_paths
        .fallback(async move |uri: Uri| elsewhere.not_found(&uri))
        .method_not_allowed_fallback(async move |method: Method, path: MatchedPath| {
            there.method_not_allowed(&method, path.as_str())
        })
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wrong_tests;
