//! The HTTP door: JSON on a Unix socket, and the metrics on a loopback TCP port.
//!
//! `caller` says who asks, `input` reads and checks what is sent, `decide` has the routes that decide, `report` those that
//! tell, `answer` the bodies of refusals and errors, `scrapers` the TCP port, `connection` the time that one may stand still.

mod answer;
mod caller;
mod connection;
mod decide;
mod input;
mod report;
mod scrapers;

use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post, put};
use rustix::net::SocketType;
use tokio::net::{TcpListener, UnixListener};

use super::socket_path;
use super::{Context, OpenError, Settings};
use caller::{Caller, Callers};
use scrapers::Scrapers;

/// Name of the socket in the directory of the sockets.
pub const FILE_NAME: &str = "http.sock";

/// Longest body that is read, bytes.
const BODY_MAX: usize = 64 * 1024;

/// The HTTP door, placed and listening.
#[derive(Debug)]
pub struct Listeners {
    unix: UnixListener,
    metrics: Option<TcpListener>,
    connections_max: usize,
}

impl Listeners {
    /// Places the Unix socket and listens for scrapes. Must run inside the runtime.
    ///
    /// # Errors
    /// Something lies at the path, the address is not a loopback one or is taken, or the system
    /// refuses.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        let path = settings.directory.join(FILE_NAME);
        socket_path::clear(&path, SocketType::STREAM)?;
        let unix =
            UnixListener::bind(&path).map_err(socket_path::refused(&path, "cannot listen"))?;
        socket_path::open_to(&path, &settings.access)?;
        let metrics = settings.metrics_listen.map(|address| {
            if !address.ip().is_loopback() {
                return Err(OpenError::Remote(address));
            }
            listen(address).map_err(|error| OpenError::Metrics { address, error })
        });
        Ok(Self {
            unix,
            metrics: metrics.transpose()?,
            connections_max: settings.connections_max,
        })
    }

    /// Address of the metrics over TCP.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Answers until it is dropped.
    pub async fn serve(self, context: Arc<Context>) {
        if let Some(metrics) = self.metrics {
            let routes = with_fallbacks(told_to_all()).with_state(Arc::clone(&context));
            tokio::spawn(axum::serve(Scrapers::new(metrics), routes).into_future());
        }
        let callers = Callers::new(self.unix, self.connections_max, Arc::clone(&context));
        let routes = with_fallbacks(routes()).with_state(context);
        let routes = routes.into_make_service_with_connect_info::<Caller>();
        if let Err(error) = axum::serve(callers, routes).await {
            tracing::error!(%error, "the HTTP socket is no longer served");
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// What everybody on the host may read.
fn told_to_all() -> Router<Arc<Context>> {
    Router::new()
        .route("/metrics", get(report::metrics))
        .route("/healthz", get(report::healthz))
        .route("/readyz", get(report::readyz))
}

fn routes() -> Router<Arc<Context>> {
    told_to_all()
        .route("/v1/enter", post(decide::enter))
        .route("/v1/exit", post(decide::exit))
        .route("/v1/admit", get(decide::admit))
        .route("/v1/status", get(report::status))
        .route("/v1/scopes", get(report::scopes))
        .route("/v1/resources", get(report::resources))
        .route("/v1/explain", get(report::explain))
        .route("/v1/rules", get(report::rules))
        .route("/v1/rules/{kind}", put(report::put_rules))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

/// Answers what no route takes in JSON too.
fn with_fallbacks(routes: Router<Arc<Context>>) -> Router<Arc<Context>> {
    routes
        .fallback(answer::not_found)
        .method_not_allowed_fallback(answer::method_not_allowed)
}

#[cfg(test)]
mod tests;
