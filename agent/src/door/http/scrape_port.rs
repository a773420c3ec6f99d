//! What a request at the TCP port of the metrics passes before it is answered: its turn, and the host that it asks for.
//!
//! Nobody knows who asks there, so a loop that asks all the time must cost no more than a small share of a CPU, and must not
//! keep Prometheus waiting. Everybody waits in one line, which moves so many places in half a second; `reports` makes one
//! text in that time at most.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::Mutex;

use super::answer::Wrong;
use super::host;
use super::line::Line;
use super::turned::{Turned, Why};

/// The port, as its requests meet it.
#[derive(Debug)]
pub(super) struct ScrapePort {
    hosts: Vec<String>,
    turned: Arc<Turned>,
    line: Mutex<Line>,
}

impl ScrapePort {
    pub(super) fn new(hosts: Vec<String>, turned: Arc<Turned>) -> Self {
        Self {
            hosts,
            turned,
            line: Mutex::new(Line::new()),
        }
    }

    /// These routes behind it.
    pub(super) fn before(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), pass))
    }

    fn check_host(&self, request: &Request) -> Result<(), Wrong> {
        if host::is_own(request.uri(), request.headers(), &self.hosts) {
            return Ok(());
        }
        self.turned.count(Why::ForeignHost);
        let text = "the request asks for another host; allowed are loopback addresses, localhost and the names in \
                    http.metrics_hosts";
        Err(Wrong::new(StatusCode::MISDIRECTED_REQUEST, text))
    }
}

async fn pass(State(port): State<Arc<ScrapePort>>, request: Request, next: Next) -> Response {
    port.line.lock().await.turn().await;
    if let Err(wrong) = port.check_host(&request) {
        return wrong.into_response();
    }
    next.run(request).await
}
