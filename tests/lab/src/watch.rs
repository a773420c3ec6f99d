//! Watches the scopes of a running agent: what state they are in, and since when.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::agent::{self, Agent, Scope};

/// Time between two looks: half a tick of the agent.
const LOOK: Duration = Duration::from_millis(50);
/// Signals that a trace shows.
const TRACED: [&str; 5] = [
    "cpu",
    "runqueue_wait",
    "throttle",
    "psi_cpu",
    "effective_cpus",
];

/// What the scopes that a service is in were like at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// From the beginning of the load.
    pub at: Duration,
    /// Whether neither the host nor the service's group limits more than in health.
    pub healthy: bool,
}

/// A thread that looks.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Seen>>,
}

impl Watch {
    /// Begins to look at the host and at the group of this path.
    ///
    /// # Errors
    /// No thread left.
    pub(crate) fn start(
        agent: &Agent,
        group: Option<String>,
        began: Instant,
        trace: bool,
    ) -> io::Result<Self> {
        let dir = agent.runtime_dir();
        let (stop, stopped) = channel();
        let look = move || {
            let mut seen = Vec::new();
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                seen.extend(look(&dir, group.as_deref(), began, trace));
            }
            seen
        };
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(look)?;
        Ok(Self { stop, thread })
    }

    /// Ends, and tells what was seen.
    pub(crate) fn stop(self) -> Vec<Seen> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn look(dir: &Path, group: Option<&str>, began: Instant, trace: bool) -> Option<Seen> {
    let scopes = agent::scopes(dir).ok()?;
    let at = began.elapsed();
    let own = |scope: &&Scope| scope.cgroup.is_none() || scope.cgroup.as_deref() == group;
    let mut healthy = true;
    for scope in scopes.iter().filter(own) {
        healthy &= matches!(scope.state.as_str(), "healthy" | "cold");
        if trace {
            tell(scope, at);
        }
    }
    Some(Seen { at, healthy })
}

/// Writes a line about a scope to standard error.
fn tell(scope: &Scope, at: Duration) {
    let signal = |name: &&str| {
        let value = scope.signals.get(name)?.get("value")?.as_f64()?;
        Some(format!("{name} {value:.2}"))
    };
    let signals: Vec<String> = TRACED.iter().filter_map(signal).collect();
    let name = scope.cgroup.as_deref().unwrap_or("host");
    let limit = scope.limits.inflight.map_or(-1, i64::from);
    let allowed = scope.limits.allowed_qps.unwrap_or(-1.0);
    let evidence = scope.evidence.join("+");
    // A trace that nobody reads is no reason to end.
    let _told = writeln!(
        io::stderr(),
        "{:7.2} {name}: {} ({}) limit {limit} qps {allowed:.0} [{evidence}] {}",
        at.as_secs_f64(),
        scope.state,
        scope.cause,
        signals.join(" ")
    );
}

/// Changes between healthy and not.
pub(crate) fn transitions(seen: &[Seen]) -> usize {
    seen.windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.healthy != b.healthy))
        .count()
}

/// What was seen before a moment of the load.
pub(crate) fn until(seen: &[Seen], end: Duration) -> &[Seen] {
    let many = seen.partition_point(|seen| seen.at <= end);
    seen.get(..many).unwrap_or(seen)
}

/// From `end` until the scopes were healthy again, ms: 0 where they were already, `None` where they
/// were not when the last look was taken.
pub(crate) fn release_ms(seen: &[Seen], end: Duration) -> Option<f64> {
    let last_bad = seen.iter().rposition(|seen| !seen.healthy);
    let Some(last_bad) = last_bad else {
        return Some(0.0);
    };
    let healthy = seen.get(last_bad + 1)?;
    Some(healthy.at.saturating_sub(end).as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_the_first_healthy_look_that_stays() {
        let seen = |at_ms, healthy| Seen {
            at: Duration::from_millis(at_ms),
            healthy,
        };
        let end = Duration::from_secs(1);
        let looks = [
            seen(900, false),
            seen(1100, false),
            seen(1300, true),
            seen(1400, true),
        ];
        assert_eq!(release_ms(&looks, end), Some(300.0));
        assert_eq!(transitions(&looks), 1);
        assert_eq!(transitions(until(&looks, end)), 0);
        assert_eq!(release_ms(&looks[..2], end), None);
        assert_eq!(release_ms(&looks[2..], end), Some(0.0));
    }
}
