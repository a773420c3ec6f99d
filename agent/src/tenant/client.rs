//! Who is connected to the gate socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_segment::sync::{Ordering, Word};

use super::peer_scope::PeerScope;
use super::permit::Permits;
use super::seats::Seat;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Process id in the agent's namespace; 0 where it cannot be seen.
    pub pid: u32,
    /// Real user id.
    pub uid: u32,
    /// Name of the process.
    pub name: String,
    /// Its seat, if it maps the pages.
    pub seat: Option<Seat>,
    /// Why it has none, where it asked for one.
    pub no_seat: Option<String>,
}

/// A connection to the gate socket.
#[derive(Debug)]
pub struct ServiceConnection {
    /// Who is at the other end.
    pub who: Who,
    scope: PeerScope,
    permits: Mutex<Permits>,
    /// Requests of its seat that scopes had refused, when that was last looked at.
    shed: Word,
}

impl ServiceConnection {
    /// The scope of its own cgroup.
    pub const fn scope(&self) -> &PeerScope {
        &self.scope
    }

    /// The permits that the agent holds for the connection.
    pub const fn permits(&self) -> &Mutex<Permits> {
        &self.permits
    }

    /// Whether scopes have refused more requests of its seat than when this was told last. For one thread.
    pub(super) fn is_refused_more(&self, shed: u64) -> bool {
        // Relaxed: nobody else writes it.
        self.shed.load(Ordering::Relaxed) != shed && {
            self.shed.store(shed, Ordering::Relaxed);
            true
        }
    }
}

/// The connections, in the order in which they came.
#[derive(Debug, Default)]
pub struct ServiceConnections {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    next: u64,
    clients: BTreeMap<u64, Arc<ServiceConnection>>,
}

/// Number of a connection among all that ever were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(u64);

impl ServiceConnections {
    /// Adds a connection.
    pub fn add(&self, who: Who, scope: PeerScope) -> (ConnectionId, Arc<ServiceConnection>) {
        let client = Arc::new(ServiceConnection {
            who,
            scope,
            permits: Mutex::default(),
            shed: Word::new(0),
        });
        let mut list = self.list.lock();
        let id = list.next;
        list.next = id.wrapping_add(1);
        list.clients.insert(id, Arc::clone(&client));
        (ConnectionId(id), client)
    }

    /// Takes a connection out.
    pub fn remove(&self, id: ConnectionId) {
        self.list.lock().clients.remove(&id.0);
    }

    /// The next connections behind one, at most so many, and from the first one on where none is behind it.
    pub fn list_from(
        &self,
        after: Option<ConnectionId>,
        most: usize,
    ) -> Vec<(ConnectionId, Arc<ServiceConnection>)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let list = self.list.lock();
        let behind = after.map_or(Unbounded, |after| Excluded(after.0));
        let some = list.clients.range((behind, Unbounded)).take(most);
        let mut some: Vec<_> = some.collect();
        if some.is_empty() {
            some = list.clients.iter().take(most).collect();
        }
        let taken = some.into_iter();
        taken
            .map(|(id, client)| (ConnectionId(*id), Arc::clone(client)))
            .collect()
    }

    /// All connections.
    pub fn list(&self) -> Vec<Arc<ServiceConnection>> {
        self.list.lock().clients.values().map(Arc::clone).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.lock().clients.len()
    }
}
