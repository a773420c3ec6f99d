//! What the tick is asked for, and what it tells.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_segment::board::Slot;

use super::configured::{DeclaredCpus, WithoutGroup};
use super::listeners::Listener;
use super::plan::Plan;
use crate::procfs::Missing;
use crate::tenant::scope_resolver::ScopeId;

/// Requests and events that wait at most.
pub(super) const QUEUE: usize = 1024;

/// What the tick is asked for.
#[derive(Debug)]
pub(super) enum Request {
    /// The scope of the group that a process is in.
    Scope {
        pid: u32,
        answer: SyncSender<ScopeId>,
    },
    /// Other settings from now on.
    Plan(Box<Plan>),
    /// A service has shown its listening socket.
    Listener(Listener),
    /// The resources that bulkheads hold now.
    Held(Vec<HeldResource>),
}

/// A resource that a bulkhead holds: what it has in flight is no load of its scopes'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldResource {
    /// Place of its tenant, in the order of their pages.
    pub tenant: usize,
    /// Its node.
    pub slot: Slot,
}

/// Something notable that happened to a scope.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It is in another state.
    State {
        /// Its name.
        scope: Arc<str>,
        /// State before.
        from: ScopeState,
        /// State now.
        to: ScopeState,
        /// Why.
        cause: Cause,
        /// Requests that it would have refused in the state before; `None` where it does not only observe.
        observed: Option<u64>,
    },
    /// Shedding does not lower the pressure; from now on only the entry limit is in force.
    Ineffective {
        /// Its name.
        scope: Arc<str>,
        /// What keeps the pressure up, as far as is known.
        cause: Cause,
    },
    /// The configuration names it, and no group is there for it.
    WithoutGroup {
        /// Its name.
        scope: Arc<str>,
        /// Where there is none, and why.
        without: WithoutGroup,
    },
    /// There is a group for it again.
    GroupFound {
        /// Its name.
        scope: Arc<str>,
    },
    /// A service is in a group that is not in sight, so it belongs to the host alone.
    GroupUnseen {
        /// Why.
        missing: Missing,
    },
    /// It uses more CPUs than were found for its group.
    CpusDoubted {
        /// Its name.
        scope: Arc<str>,
    },
    /// Its CPUs are declared.
    DeclaredCpus {
        /// Its name.
        scope: Arc<str>,
        /// How many, and what its group may use.
        declared: DeclaredCpus,
    },
}

/// More requests than the tick takes in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{QUEUE} requests wait for the next tick already; try again after it")]
pub struct Overrun;
