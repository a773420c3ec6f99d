//! The accept queues of the listeners that services have shown.
//!
//! What waits there is held by the service although it is not in flight yet. A socket that several
//! processes share counts once in each scope, and once for the host.

use std::sync::Weak;

use crate::procfs::{Missing, NoValue};
use crate::signal::AcceptQueues;
use crate::tenant::HOST;
use crate::tenant::client::ServiceConnection;

/// Most listeners that are watched.
const LISTENERS_MAX: usize = 4096;

/// Where the kernel tells it.
const SOURCE: &str = "sock_diag";

/// A listening socket, and the connection whose process has shown it.
#[derive(Debug)]
pub(super) struct Listener {
    /// `SO_COOKIE` of the socket.
    pub(super) cookie: u64,
    /// Watched as long as this is connected.
    pub(super) client: Weak<ServiceConnection>,
}

/// A listener and what the last tick found.
#[derive(Debug)]
struct Watched {
    listener: Listener,
    scope: u32,
    waiting: Option<u32>,
}

/// All listeners.
#[derive(Debug)]
pub(super) struct Listeners {
    queues: Result<AcceptQueues, NoValue>,
    /// In the order of their cookies.
    watched: Vec<Watched>,
}

impl Listeners {
    /// None yet; nothing is asked of the kernel before there is one.
    pub(super) fn new() -> Self {
        Self {
            queues: Err(NoValue::NoListener),
            watched: Vec::with_capacity(LISTENERS_MAX),
        }
    }

    /// Watches a listener from now on; there are so many only if somebody means harm, and then one
    /// more is left out.
    pub(super) fn watch(&mut self, listener: Listener) {
        if self.watched.len() >= LISTENERS_MAX {
            return;
        }
        let before = |one: &Watched| one.listener.cookie < listener.cookie;
        let place = self.watched.partition_point(before);
        let watched = Watched {
            listener,
            scope: HOST,
            waiting: None,
        };
        self.watched.insert(place, watched);
    }

    /// Looks at the queues; each tick.
    pub(super) fn look(&mut self) {
        self.watched.retain_mut(|one| {
            one.waiting = None;
            let client = one.listener.client.upgrade();
            client.is_some_and(|client| {
                one.scope = client.scope().last().place;
                true
            })
        });
        if self.watched.is_empty() {
            return;
        }
        if self.queues.is_err() {
            self.queues = AcceptQueues::open();
        }
        let watched = &mut self.watched;
        let looked = match &mut self.queues {
            Ok(queues) => queues.each(|cookie, waiting| take(watched, cookie, waiting)),
            Err(fault) => Err(*fault),
        };
        if let Err(fault) = looked {
            self.queues = Err(fault);
        }
    }

    /// Connections that wait at the listeners of a scope; the host has all.
    ///
    /// # Errors
    /// The scope has no listener, or one of them cannot be seen.
    pub(super) fn waiting(&self, scope: u32) -> Result<u32, Missing> {
        let mut own = self
            .watched
            .iter()
            .filter(|one| one.is_of(scope))
            .peekable();
        let missing = |fault| Missing {
            source: SOURCE,
            fault,
        };
        if own.peek().is_none() {
            return Err(missing(NoValue::NoListener));
        }
        if let Err(fault) = &self.queues {
            return Err(missing(*fault));
        }
        let (mut sum, mut last) = (0_u32, None);
        for one in own {
            if last != Some(one.listener.cookie) {
                let waiting = one.waiting.ok_or(missing(NoValue::HiddenListener))?;
                sum = sum.saturating_add(waiting);
            }
            last = Some(one.listener.cookie);
        }
        Ok(sum)
    }
}

impl Watched {
    fn is_of(&self, scope: u32) -> bool {
        scope == HOST || self.scope == scope
    }
}

/// Takes down the length of a queue for all who have shown that socket.
fn take(watched: &mut [Watched], cookie: u64, waiting: u32) {
    let first = watched.partition_point(|one| one.listener.cookie < cookie);
    let from_there = watched.iter_mut().skip(first);
    for one in from_there.take_while(|one| one.listener.cookie == cookie) {
        one.waiting = Some(waiting);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::Arc;

    use tidegate_segment::os::listener;

    use super::*;
    use crate::tenant::client::{ServiceConnections, Who};
    use crate::tenant::peer_scope::PeerScope;

    fn client(scope: u32) -> Arc<ServiceConnection> {
        let who = Who {
            pid: 1,
            uid: 0,
            name: String::new(),
            seat: None,
            no_seat: None,
        };
        let (_ticket, client) = ServiceConnections::default().add(who, PeerScope::found_at(scope));
        client
    }

    fn fault(listeners: &Listeners, scope: u32) -> NoValue {
        listeners.waiting(scope).unwrap_err().fault
    }

    #[test]
    fn a_shared_listener_counts_once_for_each_scope_until_its_processes_are_gone() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let _callers = [0, 1, 2].map(|_caller| TcpStream::connect(address).unwrap());
        let cookie = listener::Listener::of(&socket).unwrap().cookie();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let other_cookie = listener::Listener::of(&other).unwrap().cookie();
        let clients = [client(1), client(1), client(2)];
        let mut listeners = Listeners::new();
        listeners.look();
        assert_eq!(fault(&listeners, HOST), NoValue::NoListener);
        for (client, cookie) in [
            (&clients[0], cookie),
            (&clients[1], cookie),
            (&clients[1], other_cookie),
            (&clients[2], cookie),
        ] {
            listeners.watch(Listener {
                cookie,
                client: Arc::downgrade(client),
            });
        }
        listeners.look();
        for scope in [HOST, 1, 2] {
            assert_eq!(listeners.waiting(scope), Ok(3), "{scope}");
        }
        assert_eq!(fault(&listeners, 3), NoValue::NoListener);
        drop(other);
        listeners.look();
        assert_eq!(fault(&listeners, 1), NoValue::HiddenListener);
        assert_eq!(listeners.waiting(2), Ok(3));
        drop(clients);
        listeners.look();
        assert_eq!(fault(&listeners, 2), NoValue::NoListener);
    }
}
