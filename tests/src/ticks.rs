//! Ticks by the clock of this machine.

use std::sync::mpsc;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);

/// Calls `tick` every 100 ms with the time since `start` until it answers, or `span` is over.
pub fn until<T>(
    start: Instant,
    span: Duration,
    mut tick: impl FnMut(u64) -> Option<T>,
) -> Option<T> {
    // Nobody ever sends: a receive that times out is a wait for the clock.
    let (_sender, never) = mpsc::channel::<()>();
    while start.elapsed() < span {
        if let Some(answer) = tick(now_ns(start)) {
            return Some(answer);
        }
        let _timed_out: Result<(), mpsc::RecvTimeoutError> = never.recv_timeout(TICK);
    }
    None
}

/// Time since `start`, which counts as the first second, ns.
pub fn now_ns(start: Instant) -> u64 {
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    elapsed_ns.saturating_add(1_000_000_000)
}
