//! The queues between the tick and the rest of the agent, and both their ends.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::listeners::Listener;
use super::plan::Plan;
use super::request::{Event, HeldResource, Overrun, QUEUE, Request};
use super::scope_finder::{Freed, ScopeFinder};
use super::snapshot::{Snapshot, SnapshotCell};
use crate::tenant::client::ServiceConnection;

/// The rest of the agent's end.
#[derive(Debug)]
pub struct Handle {
    requests: SyncSender<Request>,
    events: Mutex<Receiver<Event>>,
    snapshot: SnapshotCell,
    finder: ScopeFinder,
}

impl Handle {
    /// Finds the scopes of processes, for the doors.
    pub fn scope_finder(&self) -> ScopeFinder {
        self.finder.clone()
    }

    /// Puts other settings in force with the next tick. What the scopes have learned stays.
    ///
    /// # Errors
    /// Too many requests wait.
    pub fn set_plan(&self, plan: Plan) -> Result<(), Overrun> {
        let request = Request::Plan(Box::new(plan));
        match self.requests.try_send(request) {
            // A tick that has ended takes no plan, and needs none.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Overrun),
        }
    }

    /// Watches the accept queue of a listening socket, by its `SO_COOKIE`, as long as a client is
    /// connected.
    ///
    /// # Errors
    /// Too many requests wait.
    pub fn watch_listener(
        &self,
        cookie: u64,
        client: &Arc<ServiceConnection>,
    ) -> Result<(), Overrun> {
        let client = Arc::downgrade(client);
        let request = Request::Listener(Listener { cookie, client });
        match self.requests.try_send(request) {
            // A tick that has ended watches nothing.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Overrun),
        }
    }

    /// Says which resources bulkheads hold from now on.
    ///
    /// # Errors
    /// Too many requests wait.
    pub fn hold(&self, held: Vec<HeldResource>) -> Result<(), Overrun> {
        match self.requests.try_send(Request::Held(held)) {
            // A tick that has ended judges nobody.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Overrun),
        }
    }

    /// What happened since the last call, oldest first.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        // A queue that a panic left behind is still in order.
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.try_iter().collect::<Vec<_>>().into_iter()
    }

    /// Looks at the control loop as it was after the last tick. The tick does not wait for `look`, and keeps the old
    /// snapshot where it takes long.
    pub fn look<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        self.snapshot.look(look)
    }

    /// The control loop as it was after the last tick.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot.get()
    }
}

/// The tick's end.
#[derive(Debug)]
pub(super) struct Mailbox {
    requests: Receiver<Request>,
    events: SyncSender<Event>,
    pub lost: u64,
    /// Counts the places that became free, so that nobody believes an old answer.
    pub freed: Freed,
}

impl Mailbox {
    /// Both ends.
    pub(super) fn new(snapshot: SnapshotCell) -> (Self, Handle) {
        let (ask, requests) = sync_channel(QUEUE);
        let (events, told) = sync_channel(QUEUE);
        let finder = ScopeFinder::new(ask.clone());
        let mailbox = Self {
            requests,
            events,
            lost: 0,
            freed: finder.freed(),
        };
        let handle = Handle {
            requests: ask,
            events: Mutex::new(told),
            snapshot,
            finder,
        };
        (mailbox, handle)
    }

    /// The next request.
    pub(super) fn take(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }

    /// Tells of an event; one that finds no room is counted.
    pub(super) fn tell(&mut self, event: Event) {
        if self.events.try_send(event).is_err() {
            self.lost = self.lost.saturating_add(1);
        }
    }
}
