//! What a request at the TCP port of the metrics passes before it is answered: the host that it asks for, its turn, and
//! for a scrape the text that others have just been given.
//!
//! Nobody knows who asks there, so a loop that asks all the time must cost no more than a small share of a CPU, and must not
//! keep Prometheus waiting. Everybody waits in one line, which moves so many places in half a second; one text is made in
//! that time at most.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::answer::Wrong;
use super::exchange::Shared;
use super::host;
use super::turned::{Turned, Why};
use crate::door::Context;
use crate::telemetry::{fill, scrape};

/// For so long one text serves all scrapes.
const SERVES: Duration = Duration::from_millis(500);

/// Most answers in that time. With all connections asking without a pause, each is answered every second.
const ANSWERS: u32 = 32;

/// The port, as its requests meet it.
#[derive(Debug)]
pub(super) struct ScrapePort {
    context: Arc<Context>,
    hosts: Vec<String>,
    turned: Arc<Turned>,
    line: Mutex<Line>,
    text: Mutex<Option<Text>>,
}

/// The line of those who ask: whoever has the lock is first in it.
#[derive(Debug)]
struct Line {
    since: Instant,
    answers: u32,
}

#[derive(Debug)]
struct Text {
    made: Instant,
    bytes: Bytes,
}

impl ScrapePort {
    pub(super) fn new(context: Arc<Context>, hosts: Vec<String>, turned: Arc<Turned>) -> Self {
        Self {
            context,
            hosts,
            turned,
            line: Mutex::new(Line {
                since: Instant::now(),
                answers: 0,
            }),
            text: Mutex::default(),
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

    /// A text that is no older than [`SERVES`]; one is made at a time.
    async fn scrape(&self) -> Result<Bytes, Wrong> {
        let mut text = self.text.lock().await;
        if let Some(text) = text.as_ref().filter(|text| text.made.elapsed() < SERVES) {
            return Ok(text.bytes.clone());
        }
        let all: Vec<_> = self.context.tenants.iter().cloned().collect();
        let made = fill::scrape(&self.context, &all).text().map_err(|error| {
            let text = format!("the metrics cannot be written: {error}");
            Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, text)
        })?;
        let bytes = Bytes::from(made);
        *text = Some(Text {
            made: Instant::now(),
            bytes: bytes.clone(),
        });
        Ok(bytes)
    }
}

impl Line {
    /// Waits for a turn. Others who wait come after, in their order.
    async fn turn(&mut self) {
        let next = self.since.checked_add(SERVES).unwrap_or(self.since);
        if self.answers >= ANSWERS {
            sleep_until(next).await;
        }
        let now = Instant::now();
        if now >= next {
            (self.since, self.answers) = (now, 0);
        }
        self.answers = self.answers.saturating_add(1);
    }
}

async fn pass(State(port): State<Arc<ScrapePort>>, request: Request, next: Next) -> Response {
    port.line.lock().await.turn().await;
    if let Err(wrong) = port.check_host(&request) {
        return wrong.into_response();
    }
    if request.method() != Method::GET || request.uri().path() != "/metrics" {
        return next.run(request).await;
    }
    match port.scrape().await {
        Ok(text) => {
            let head = [(CONTENT_TYPE, scrape::CONTENT_TYPE)];
            (head, Extension(Shared), text).into_response()
        }
        Err(wrong) => wrong.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn field_b5_a_line_of_loops_moves_so_many_places_in_half_a_second_and_everybody_comes_in()
    {
        let line = Arc::new(Mutex::new(Line {
            since: Instant::now(),
            answers: 0,
        }));
        let begun = Instant::now();
        let loops = (0..64).map(|_loop| {
            let line = Arc::clone(&line);
            tokio::spawn(async move {
                let mut turns = 0_u32;
                while begun.elapsed() < Duration::from_secs(10) {
                    line.lock().await.turn().await;
                    turns += 1;
                }
                turns
            })
        });
        let mut all = 0;
        for turns in loops.collect::<Vec<_>>() {
            let turns = turns.await.unwrap();
            assert!(turns >= 9, "one came in {turns} times in 10 s");
            all += turns;
        }
        assert!(all <= 32 * 21 + 64, "{all} answers in 10 s");
    }
}
