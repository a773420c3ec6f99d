//! Seats in which the agent counts what callers over sockets hold.
//!
//! A caller that does not map the pages has no seat of its own, but what it holds must count in its scope, or the scope's
//! limit means one thing in shared memory and another at a socket. So the agent takes a seat for it in that scope: one for
//! all processes of a name, since they are one service there. For the gate, the law and the shares it is a seat as any.
//! The agent's own seat, which is in the host, serves callers whose scope is not known and those for whom no seat is left.
//!
//! A permit stays in the seat, and so in the scope, in which it was given. When the group of a scope ends, the tick moves
//! its seats to the host.

use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_abi::decision::Direction;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Gate, Pass};
use tidegate_segment::sync::{Ordering, Word};

use super::callers::Caller;
use super::scope_resolver::ScopeId;
use super::scope_users::{CountedPermit, ScopeUsers, UserAt};
use super::seats::Seat;
use super::{HOST, Tenant, own_process};

/// How long a seat is kept that nobody asks in, ns: callers over HTTP often make a connection for each request.
const KEPT_NS: u64 = 60_000_000_000;

/// One in so many of a tenant's seats may be the agent's for callers over sockets; half of those for the second and
/// further services of a scope.
const PART: u32 = 4;

/// The seats of a tenant for its callers over sockets.
#[derive(Debug, Default)]
pub(super) struct ProxySeats(Mutex<Vec<Arc<ProxySeat>>>);

/// One of them.
#[derive(Debug)]
pub struct ProxySeat {
    gate: Gate,
    seat: Seat,
    scope: ScopeId,
    service: u64,
    /// When somebody last asked in it, monotonic ns.
    used_ns: Word,
}

/// A caller, and the seat in which its requests count.
#[derive(Debug, Clone)]
pub struct SeatedCaller {
    pub(super) caller: Caller,
    /// `None` is the agent's own seat.
    seat: Option<Arc<ProxySeat>>,
    /// Where its user counts with others.
    users: Option<Arc<ScopeUsers>>,
}

/// An admitted request of a caller over a socket, and the seat that it counts in.
#[derive(Debug)]
pub struct ProxyPermit {
    /// What the gate gave.
    pub pass: Pass,
    seat: Option<Arc<ProxySeat>>,
    counted: Option<CountedPermit>,
}

/// In the agent's own seat.
impl From<Caller> for SeatedCaller {
    fn from(caller: Caller) -> Self {
        Self {
            caller,
            seat: None,
            users: None,
        }
    }
}

/// Given in the agent's own seat.
impl From<Pass> for ProxyPermit {
    fn from(pass: Pass) -> Self {
        Self {
            pass,
            seat: None,
            counted: None,
        }
    }
}

impl SeatedCaller {
    /// The same, whose user is held to its part of what it and others may hold.
    #[must_use]
    pub fn among(self, users: &Arc<ScopeUsers>) -> Self {
        Self {
            users: Some(Arc::clone(users)),
            ..self
        }
    }

    /// The permit of a request that was admitted.
    pub fn permit(&self, pass: Pass) -> ProxyPermit {
        // What goes out is in no scope.
        let users = self.users.as_ref();
        let users = users.filter(|_| matches!(pass.direction, Direction::In));
        ProxyPermit {
            counted: users.map(|users| users.count(self.at(self.own_scope()), pass.entered_ns)),
            ..self.short_permit(pass)
        }
    }

    /// The same for one that is given back at once.
    pub(super) fn short_permit(&self, pass: Pass) -> ProxyPermit {
        ProxyPermit {
            pass,
            seat: self.seat.clone(),
            counted: None,
        }
    }

    /// Whoever counts with its user, and the scopes in which its permits count.
    pub(super) fn shares(&self) -> Option<(&Arc<ScopeUsers>, impl Iterator<Item = UserAt>)> {
        let own = Some(self.own_scope()).filter(|own| *own != ScopeId::HOST);
        let scopes = std::iter::once(ScopeId::HOST).chain(own);
        let places = scopes.map(|scope| self.at(scope));
        self.users.as_ref().map(|users| (users, places))
    }

    /// The scope in which its permits count besides the host.
    fn own_scope(&self) -> ScopeId {
        self.seat.as_ref().map_or(ScopeId::HOST, |seat| seat.scope)
    }

    const fn at(&self, scope: ScopeId) -> UserAt {
        UserAt {
            scope,
            uid: self.caller.uid,
        }
    }

    /// Whether what it holds counts in the scope that it belongs to.
    pub(super) fn counts_in_its_scope(&self) -> bool {
        self.caller.scope.place == HOST || self.seat.is_some()
    }

    /// The gate that decides for it.
    pub(super) fn gate<'s>(&'s self, own: &'s Gate) -> &'s Gate {
        self.seat.as_ref().map_or(own, |seat| &seat.gate)
    }
}

impl ProxyPermit {
    /// How its user counts for it, where that still counts in its scopes.
    pub(super) fn counted(&self) -> Option<&CountedPermit> {
        self.counted.as_ref().filter(|counted| !counted.is_aside())
    }

    /// It counts in its scopes no more, as the gate is to be told beside this.
    pub(super) fn set_aside(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.set_aside();
        }
    }

    /// The gate that takes it back.
    pub(super) fn gate<'s>(&'s self, own: &'s Gate) -> &'s Gate {
        self.seat.as_ref().map_or(own, |seat| &seat.gate)
    }
}

impl ProxySeats {
    fn find(seats: &[Arc<ProxySeat>], caller: &Caller) -> (Option<usize>, Option<usize>) {
        let of_scope = |seat: &Arc<ProxySeat>| seat.scope == caller.scope;
        let own = |seat: &Arc<ProxySeat>| of_scope(seat) && seat.service == caller.service;
        (seats.iter().position(own), seats.iter().position(of_scope))
    }
}

impl Tenant {
    /// Finds the seat in which a caller's requests count: the agent's for the caller's service in its scope. Where none
    /// is left for that service, that of another service of the scope; where the scope has none, the agent's own, and
    /// the allowed QPS of the scope stands for its limit.
    pub fn seat_caller(&self, caller: Caller) -> SeatedCaller {
        SeatedCaller {
            seat: self.proxy_seat(&caller),
            caller,
            users: None,
        }
    }

    fn proxy_seat(&self, caller: &Caller) -> Option<Arc<ProxySeat>> {
        // Services of the agent's last life count no seat that is new, but the agent's own.
        if caller.scope.place == HOST || !self.kept().is_settled() {
            return None;
        }
        let mut seats = self.proxy_seats.0.lock();
        let (own, of_scope) = ProxySeats::find(&seats, caller);
        let found = own.or_else(|| {
            let most = self.board().geometry().seats() / PART;
            let most = if of_scope.is_some() { most / 2 } else { most };
            let room = seats.len() < usize::try_from(most).unwrap_or(0);
            let new = room.then(|| self.take_proxy_seat(caller)).flatten();
            new.map_or(of_scope, |new| {
                seats.push(new);
                seats.len().checked_sub(1)
            })
        });
        let seat = Arc::clone(seats.get(found?)?);
        drop(seats);
        // Relaxed: whoever reads it has the lock, and this seat is not given up while it is shared.
        seat.used_ns.store(self.board().now_ns(), Ordering::Relaxed);
        Some(seat)
    }

    fn take_proxy_seat(&self, caller: &Caller) -> Option<Arc<ProxySeat>> {
        let process = tidegate_segment::board::Process {
            scope: caller.scope.place,
            ..own_process()
        };
        let seat = self.seats().take_for_agent(process, caller.service)?;
        self.ledger().write_header();
        let gate = Gate::new(*self.board(), *self.ledger(), seat.index, seat.generation);
        Some(Arc::new(ProxySeat {
            gate,
            seat,
            scope: caller.scope,
            service: caller.service,
            used_ns: Word::new(0),
        }))
    }

    /// Gives up the seats that nobody asked in for a while and in which nothing is held. Those of a scope whose group is
    /// gone are in the host from then on, and are given up once nothing is held in them. To be called each second or so.
    pub fn tend_proxy_seats(&self, now_ns: u64, is_current: impl Fn(ScopeId) -> bool) {
        let mut seats = self.proxy_seats.0.lock();
        seats.retain(|seat| {
            let is_over = !is_current(seat.scope);
            if is_over {
                self.seats().move_to_scope(seat.seat, HOST);
            }
            let unused_ns = now_ns.saturating_sub(seat.used_ns.load(Ordering::Relaxed));
            // Whoever asks in it or holds a permit of it shares it, and gets it under this lock.
            let is_shared = Arc::strong_count(seat) > 1;
            let keep = is_shared || (!is_over && unused_ns < KEPT_NS);
            if !keep {
                self.seats().revoke(seat.seat);
                self.seats().give_back_of_agent(seat.seat);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests;
