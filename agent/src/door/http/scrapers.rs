//! The TCP port of the metrics. Every user of the host may connect and none is known by name, so it has a
//! bound of its own: without it they could take the descriptors that the other doors need.

use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::over_the_bound;
use super::connection::Bounded;
use super::exchange::Served;
use crate::door::Context;
use crate::door::accept::Failures;
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
    places: Arc<Semaphore>,
    context: Arc<Context>,
    failures: Failures,
}

impl Scrapers {
    pub(super) fn new(listener: TcpListener, context: Arc<Context>) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(SCRAPERS_MAX)),
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

    async fn accept(&mut self) -> Bounded<TcpStream, OwnedSemaphorePermit> {
        loop {
            match self.listener.accept().await {
                Ok((stream, _address)) => match Arc::clone(&self.places).try_acquire_owned() {
                    Ok(place) => return Bounded::new(stream, place),
                    Err(_none) => {
                        let answer = over_the_bound(&NoPlace::all("connections", SCRAPERS_MAX));
                        if let Err(error) = stream.try_write(answer.as_bytes()) {
                            tracing::debug!(%error, "a scraper over the bound was not told so");
                        }
                    }
                },
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
    use crate::door::tests::{context, settings};

    const DEADLINE: Duration = Duration::from_secs(5);

    /// Whether a scraper that connects now is served.
    async fn is_served(address: SocketAddr) -> io::Result<bool> {
        let mut scraper = TcpStream::connect(address).await?;
        let question = b"GET /healthz HTTP/1.1\r\nhost: tidegate\r\n\r\n";
        scraper.write_all(question).await?;
        let mut head = [0; 12];
        scraper.read_exact(&mut head).await?;
        Ok(&head == b"HTTP/1.1 200")
    }

    #[tokio::test]
    async fn scrapers_that_ask_nothing_take_a_bounded_number_of_connections() {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        settings.metrics_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let door = Listeners::open(&settings).unwrap();
        let address = door.metrics_address().unwrap();
        tokio::spawn(door.serve(context()));
        let mut open = Vec::new();
        for _ in 0..SCRAPERS_MAX {
            open.push(TcpStream::connect(address).await.unwrap());
        }
        let mut over = TcpStream::connect(address).await.unwrap();
        let mut text = String::new();
        let read = over.read_to_string(&mut text);
        tokio::time::timeout(DEADLINE, read).await.unwrap().unwrap();
        assert!(text.starts_with("HTTP/1.1 503"), "{text}");
        assert!(text.contains("connections: all 64 are taken"), "{text}");

        drop(open);
        let served = async { while !is_served(address).await.unwrap_or(false) {} };
        tokio::time::timeout(DEADLINE, served).await.unwrap();
    }
}
