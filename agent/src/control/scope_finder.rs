//! Finds the scope of a process for the doors.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::request::Request;
use crate::tenant::HOST;
use crate::tenant::scope_resolver::ScopeResolver;

/// Longest wait for the tick's answer; a tick that is later than this is in trouble itself, and the
/// process then belongs to the host alone.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts the places of scopes that became free.
#[derive(Debug, Clone, Default)]
pub(super) struct Freed(Arc<AtomicUsize>);

impl Freed {
    /// A place became free.
    pub(super) fn count(&self) {
        // Release: pairs with the Acquire in `ScopeFinder::known`.
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Asks the tick for the scope of a process, and remembers the answer for all processes with the same
/// membership: a service that starts a hundred processes waits for one tick.
#[derive(Debug, Clone)]
pub struct ScopeFinder {
    requests: SyncSender<Request>,
    freed: Freed,
    answers: Arc<Mutex<Answers>>,
}

#[derive(Debug, Default)]
struct Answers {
    /// How many places had become free when these were given.
    freed: usize,
    /// By the content of `/proc/PID/cgroup`.
    by_membership: HashMap<Vec<u8>, u32>,
}

impl ScopeFinder {
    pub(super) fn new(requests: SyncSender<Request>) -> Self {
        Self {
            requests,
            freed: Freed::default(),
            answers: Arc::default(),
        }
    }

    pub(super) fn freed(&self) -> Freed {
        self.freed.clone()
    }

    /// Calls `with` on the answers that are still true.
    fn answers<T>(&self, with: impl FnOnce(&mut Answers) -> T) -> T {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: pairs with the Release in `Freed::count`.
        let freed = self.freed.0.load(Ordering::Acquire);
        if answers.freed != freed {
            answers.by_membership.clear();
            answers.freed = freed;
        }
        with(&mut answers)
    }

    fn ask(&self, pid: u32) -> Option<u32> {
        let (answer, told) = sync_channel(1);
        self.requests
            .try_send(Request::Scope { pid, answer })
            .ok()?;
        told.recv_timeout(PATIENCE).ok()
    }
}

impl ScopeResolver for ScopeFinder {
    /// Waits for the next tick when the group is new.
    fn scope_of(&self, pid: u32) -> u32 {
        let Ok(membership) = std::fs::read(format!("/proc/{pid}/cgroup")) else {
            return blocking(|| self.ask(pid)).unwrap_or(HOST);
        };
        if let Some(known) = self.answers(|answers| answers.by_membership.get(&membership).copied())
        {
            return known;
        }
        let Some(scope) = blocking(|| self.ask(pid)) else {
            return HOST;
        };
        self.answers(|answers| answers.by_membership.insert(membership, scope));
        scope
    }
}

/// Waits without holding up the other tasks of a runtime.
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
        tokio::task::block_in_place(wait)
    } else {
        wait()
    }
}
