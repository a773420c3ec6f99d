//! The TCP port of the metrics. Every user of the host may connect and none is known by name, so it has a
//! bound of its own: without it they could take the descriptors that the other doors need.

use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};

use super::answer::over_the_bound;
use super::connection::Bounded;
use super::crowd::{ConnectionPlace, ConnectionQueue};
use super::exchange::Served;
use super::turned::Turned;
use crate::door::accept::Failures;
use crate::host::AgentState;
use crate::places::{Holder, NoPlace};

/// Most connections at once.
pub(super) const SCRAPERS_MAX: usize = 64;

/// In whose name what scrapers take is counted: nobody knows who they are.
const UNKNOWN: Holder = Holder {
    uid: u32::MAX,
    pid: 0,
};

/// The listener, with the places for its connections.
#[derive(Debug)]
pub(super) struct Scrapers {
    listener: TcpListener,
    crowd: Arc<ConnectionQueue>,
    context: Arc<AgentState>,
    failures: Failures,
}

impl Scrapers {
    pub(super) fn new(
        listener: TcpListener,
        context: Arc<AgentState>,
        turned: Arc<Turned>,
    ) -> Self {
        Self {
            listener,
            crowd: ConnectionQueue::new(SCRAPERS_MAX, turned),
            context,
            failures: Failures::new("http.metrics_listen"),
        }
    }

    /// Answers on these routes until it is dropped.
    pub(super) async fn serve(mut self, routes: Router) {
        loop {
            let stream = self.accept().await;
            let served = Served {
                routes: routes.clone(),
                bounds: Arc::clone(&self.context.bounds),
                holder: UNKNOWN,
                caller: None,
            };
            tokio::spawn(served.on(stream));
        }
    }

    async fn accept(&mut self) -> Bounded<TcpStream, ConnectionPlace> {
        loop {
            match self.listener.accept().await {
                Ok((stream, _address)) => {
                    if let Some(chair) = self.crowd.join().await {
                        return Bounded::new(stream, chair);
                    }
                    let answer = over_the_bound(&NoPlace::all("connections", SCRAPERS_MAX));
                    if let Err(error) = stream.try_write(answer.as_bytes()) {
                        tracing::debug!(event = "turned_away_unheard", %error, "a scraper over the bound did not take its answer");
                    }
                }
                Err(error) => self.failures.wait_after(&error).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::door::http::Listeners;
    use crate::door::kind::Door as _;
    use crate::door::tests::settings;
    use crate::host::tests::agent;
    use crate::telemetry::turned::Why;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// The port, served, and what it counts.
    fn port() -> (tempfile::TempDir, SocketAddr, Arc<AgentState>) {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        settings.metrics_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let door = Listeners::open(&settings).unwrap();
        let address = door.metrics_address().unwrap();
        let context = agent();
        tokio::spawn(Box::new(door).serve(Arc::clone(&context)));
        (directory, address, context)
    }

    /// The answer to a question on a connection of its own.
    async fn answer(address: SocketAddr, path: &str, host: &str) -> io::Result<String> {
        let mut scraper = TcpStream::connect(address).await?;
        let question = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        scraper.write_all(question.as_bytes()).await?;
        let mut text = String::new();
        scraper.read_to_string(&mut text).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn field_b5_connections_that_drip_keep_nobody_out_and_are_counted() {
        let (_directory, address, context) = port();
        let mut open = Vec::new();
        for _ in 0..SCRAPERS_MAX * 2 {
            let mut dripping = TcpStream::connect(address).await.unwrap();
            dripping.write_all(b"GET /metrics HTT").await.unwrap();
            open.push(dripping);
        }
        for _ in 0..3 {
            let answer = answer(address, "/metrics", "localhost");
            let text = tokio::time::timeout(DEADLINE, answer)
                .await
                .unwrap()
                .unwrap();
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        }
        let counts = context.metrics.turned().all();
        let made_room: u64 = counts
            .filter(|(why, _count)| *why == Why::MadeRoom)
            .map(|(_why, count)| count)
            .sum();
        assert!(made_room >= 64, "{made_room}");
    }

    #[tokio::test]
    async fn field_b5_a_name_that_was_pointed_here_is_told_nothing() {
        let (_directory, address, _context) = port();
        for path in ["/metrics", "/healthz", "/readyz", "/v1/status"] {
            let text = answer(address, path, "evil.example").await.unwrap();
            assert!(text.starts_with("HTTP/1.1 421"), "{text}");
            assert!(!text.contains("tidegate_build_info"), "{text}");
            assert!(text.contains("http.metrics_hosts"), "{text}");
        }
        let text = answer(address, "/metrics", "127.0.0.1:9469").await.unwrap();
        let turned = "tidegate_metrics_port_turned_away_total{cause=\"foreign_host\"} 4";
        assert!(text.contains(turned), "{text}");
    }

    #[tokio::test]
    async fn each_form_is_told_to_who_accepts_it_also_within_half_a_second() {
        let (_directory, address, _context) = port();
        for _ in 0..2 {
            for (accept, kind, family) in [
                (
                    "application/openmetrics-text; version=1.0.0",
                    "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    "# TYPE tidegate_ticks counter",
                ),
                (
                    "text/plain",
                    "text/plain; version=0.0.4",
                    "# TYPE tidegate_ticks_total counter",
                ),
            ] {
                let host = format!("localhost\r\naccept: {accept}");
                let text = answer(address, "/metrics", &host).await.unwrap();
                assert!(
                    text.contains(&format!("content-type: {kind}\r\n")),
                    "{text}"
                );
                assert!(text.contains(family), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn field_b5_scrapes_within_half_a_second_are_one_text() {
        let (_directory, address, _context) = port();
        let uptime = |text: String| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with("tidegate_uptime_seconds"));
            line.unwrap().to_owned()
        };
        let mut told = Vec::new();
        for _ in 0..8 {
            told.push(uptime(
                answer(address, "/metrics", "localhost").await.unwrap(),
            ));
        }
        told.dedup();
        assert!(told.len() < 8, "each scrape was made anew: {told:?}");
    }
}
