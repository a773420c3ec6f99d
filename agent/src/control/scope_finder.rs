//! Finds the scope of a process for the doors.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_segment::sync::{Ordering, Word};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::request::Request;
use crate::signal::GROUPS_MAX;
use crate::tenant::scope_resolver::{ScopeId, ScopeResolver};

/// Longest wait for the tick's answer; a tick that is later than this is in trouble itself, and the
/// process then belongs to the host alone.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most memberships that are remembered; with more, all are asked for anew.
const ANSWERS_MAX: usize = 4096;

/// Counts how often the places of scopes became free.
#[derive(Debug, Clone)]
pub(super) struct Freed(Arc<Times>);

#[derive(Debug)]
struct Times {
    all: Word,
    /// In the order of the places.
    of: Box<[Word]>,
}

impl Default for Freed {
    fn default() -> Self {
        let places = 0..=GROUPS_MAX;
        Self(Arc::new(Times {
            all: Word::new(0),
            of: places.map(|_place| Word::new(0)).collect(),
        }))
    }
}

impl Freed {
    /// A place became free.
    pub(super) fn count(&self, place: usize) {
        if let Some(times) = self.0.of.get(place) {
            // Release: pairs with the Acquire in `scope_at`.
            times.change(Ordering::Release, |times| times.wrapping_add(1));
        }
        // Release: pairs with the Acquire in `ScopeFinder::answers`.
        let all = &self.0.all;
        all.change(Ordering::Release, |times| times.wrapping_add(1));
    }

    /// The scope that is at a place now.
    pub(super) fn scope_at(&self, place: u32) -> ScopeId {
        let at = usize::try_from(place).ok();
        // Acquire: pairs with the Release in `count`.
        let times = at.and_then(|at| self.0.of.get(at));
        let times = times.map_or(0, |times| times.load(Ordering::Acquire));
        ScopeId {
            place,
            generation: u32::try_from(times).unwrap_or(u32::MAX),
        }
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
    freed: u64,
    /// By the content of `/proc/PID/cgroup`.
    by_membership: HashMap<Vec<u8>, ScopeId>,
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
        let freed = self.freed.0.all.load(Ordering::Acquire);
        if answers.freed != freed {
            answers.by_membership.clear();
            answers.freed = freed;
        }
        with(&mut answers)
    }

    fn ask(&self, pid: u32) -> Option<ScopeId> {
        let (answer, told) = sync_channel(1);
        self.requests
            .try_send(Request::Scope { pid, answer })
            .ok()?;
        told.recv_timeout(PATIENCE).ok()
    }

    fn known(&self, membership: &[u8]) -> Option<ScopeId> {
        self.answers(|answers| answers.by_membership.get(membership).copied())
    }

    fn remember(&self, membership: Vec<u8>, scope: ScopeId) {
        self.answers(|answers| {
            if answers.by_membership.len() >= ANSWERS_MAX {
                answers.by_membership.clear();
            }
            answers.by_membership.insert(membership, scope);
        });
    }
}

/// To which groups a process belongs, as the kernel writes it.
fn membership(pid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/cgroup")).ok()
}

impl ScopeResolver for ScopeFinder {
    /// Waits for the next tick when the group is new.
    fn scope_of(&self, pid: u32) -> ScopeId {
        let membership = membership(pid);
        if let Some(known) = membership.as_deref().and_then(|own| self.known(own)) {
            return known;
        }
        let Some(scope) = blocking(|| self.ask(pid)) else {
            return ScopeId::HOST;
        };
        if let Some(membership) = membership {
            self.remember(membership, scope);
        }
        scope
    }

    fn known_scope_of(&self, pid: u32) -> Option<ScopeId> {
        self.known(&membership(pid)?)
    }

    fn is_current(&self, scope: ScopeId) -> bool {
        self.freed.scope_at(scope.place) == scope
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
