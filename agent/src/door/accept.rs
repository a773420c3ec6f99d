//! What a door does while the kernel gives it no connection, as when descriptors are used up.

use std::io;
use std::time::{Duration, Instant};

/// How long to wait before the next try.
const RETRY: Duration = Duration::from_millis(50);

/// How often it is told; each door tries twenty times a second.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Connections that could not be accepted at one socket.
#[derive(Debug)]
pub struct Failures {
    socket: &'static str,
    told: Option<Instant>,
    untold: u64,
}

impl Failures {
    /// None yet at the socket of this name.
    pub const fn new(socket: &'static str) -> Self {
        Self {
            socket,
            told: None,
            untold: 0,
        }
    }

    /// Takes one down, tells of it now and then, and waits until it makes sense to try again.
    pub async fn wait_after(&mut self, error: &io::Error) {
        if let Some(times) = self.count(Instant::now()) {
            let socket = self.socket;
            tracing::warn!(event = "accept_failed", %error, socket, times, "cannot accept connections; retrying");
        }
        tokio::time::sleep(RETRY).await;
    }

    /// Takes one down; how many are to be told of now, this one included.
    pub fn count_now(&mut self) -> Option<u64> {
        self.count(Instant::now())
    }

    /// How many are to be told of now, this one included.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.untold = self.untold.saturating_add(1);
        let recent = |told| now.saturating_duration_since(told) < TOLD_EVERY;
        if self.told.is_some_and(recent) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_failures_is_told_every_ten_seconds_with_their_number() {
        let mut failures = Failures::new("gate.sock");
        let begin = Instant::now();
        let told: Vec<u64> = (0..3600_u32 * 20)
            .filter_map(|nth| failures.count(begin + RETRY * nth))
            .collect();
        assert_eq!(told.len(), 360);
        assert_eq!(told.first(), Some(&1));
        assert!(told.iter().skip(1).all(|times| *times == 200), "{told:?}");
    }
}
