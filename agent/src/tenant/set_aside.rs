//! A user that comes by a socket is held to its part of a scope's limit while others ask, see [`super::scope_users`].

use std::collections::HashMap;

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Class, Direction, Reason, ScopeState};
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{GateVerdict, Refusal, Request};
use tidegate_segment::lane;

use super::Tenant;
use super::client::ServiceConnection;
use super::permit::Permits;
use super::proxy_seats::SeatedCaller;
use super::scope_resolver::ScopeId;
use super::scope_users::{ScopeUsers, UserAt};

/// A permit is held for long from this many times on as long as a request takes on the average.
const USUAL_TIMES: u64 = 8;

/// However short or long requests are, from these times on, ns.
const LONG_NS: (u64, u64) = (1_000_000_000, 10_000_000_000);

impl Tenant {
    /// Whether a caller's user may hold one more of its scopes' limits.
    ///
    /// # Errors
    /// The refusal, if others ask and it has its part.
    pub(super) fn check_share(
        &self,
        caller: &SeatedCaller,
        request: Request<'_>,
    ) -> Result<(), Refusal> {
        let Some((users, mut places)) = caller.shares() else {
            return Ok(());
        };
        // Probes have a budget of their own.
        if request.direction != Direction::In || request.class == Class::Probe {
            return Ok(());
        }
        let now_ns = self.board().now_ns();
        let full = places.find_map(|at| users.is_full(at, self.limit_of(at.scope)?, now_ns));
        full.map_or(Ok(()), |share| {
            Err(Refusal::share(share.held, share.most, now_ns))
        })
    }

    /// Takes down that a caller was refused, where that was for what others hold of a limit.
    pub(super) fn note_refused(&self, caller: &SeatedCaller, verdict: &GateVerdict) {
        let GateVerdict::Refused(refusal) = verdict else {
            return;
        };
        if refusal.reason != Reason::Overload {
            return;
        }
        let Some((users, places)) = caller.shares() else {
            return;
        };
        let now_ns = self.board().now_ns();
        let reached = |at: &UserAt| self.board().scope(at.scope.place).tight == refusal.limit;
        places.filter(reached).for_each(|at| users.ask(at, now_ns));
    }

    /// Sets permits aside that were held for long, so many as each user has too many. Gives how many that were.
    pub fn set_aside(&self, users: &ScopeUsers, now_ns: u64) -> u32 {
        self.note_seats_refused(users, now_ns);
        let mut surplus = users.surplus(|scope| self.limit_of(scope), now_ns);
        surplus.retain(|_at, many| *many > 0);
        if surplus.is_empty() || self.bounds_inflight_by_rule() {
            return 0;
        }
        let mut many = self.set_aside_of(&mut self.timed_permits().lock(), &mut surplus, now_ns);
        for client in self.clients().list() {
            let permits = &mut client.permits().lock();
            many = many.saturating_add(self.set_aside_of(permits, &mut surplus, now_ns));
        }
        many
    }

    fn set_aside_of(
        &self,
        permits: &mut Permits,
        surplus: &mut HashMap<UserAt, u32>,
        now_ns: u64,
    ) -> u32 {
        let mut many = 0_u32;
        for permit in permits.given_before(now_ns.saturating_sub(self.long_ns())) {
            let Some(counted) = permit.counted() else {
                continue;
            };
            let places = || counted.places();
            if !places().any(|at| surplus.get(&at).is_some_and(|many| *many > 0)) {
                continue;
            }
            for at in places() {
                surplus
                    .entry(at)
                    .and_modify(|many| *many = many.saturating_sub(1));
            }
            let gate = *permit.gate(self.gate());
            gate.set_aside(lane::current(), &mut permit.pass);
            permit.set_aside();
            many = many.saturating_add(1);
        }
        many
    }

    /// From when on a permit is held for long, ns.
    fn long_ns(&self) -> u64 {
        let counts = self.seats().scope_counts(ScopeId::HOST.place);
        let usual_ns = counts.rt_ns.checked_div(counts.success).unwrap_or(0);
        let (least, most) = LONG_NS;
        usual_ns.saturating_mul(USUAL_TIMES).clamp(least, most)
    }

    /// The limit in flight that a scope is held to now, if any.
    fn limit_of(&self, scope: ScopeId) -> Option<u32> {
        let word = self.board().scope(scope.place);
        let limit = match word.state {
            ScopeState::Healthy | ScopeState::Cold => word.entry,
            ScopeState::Overload => word.tight,
            ScopeState::Reject => return None,
        };
        (!word.observe && limit < ScopeWord::LIMIT_MAX).then_some(limit)
    }

    /// Whether a system rule says how much may be in flight: that is to hold whoever holds it.
    fn bounds_inflight_by_rule(&self) -> bool {
        let system = self.board().view().system();
        system.is_some_and(|system| system.marks.concurrency.is_some())
    }

    /// Services that map the pages are refused where the agent does not see it.
    fn note_seats_refused(&self, users: &ScopeUsers, now_ns: u64) {
        for client in self.clients().list() {
            if self.seat_is_refused_more(&client) {
                let own = client.scope().last();
                for scope in [ScopeId::HOST, own] {
                    if self.is_reached(scope) {
                        let uid = client.who.uid;
                        users.ask(UserAt { scope, uid }, now_ns);
                    }
                }
            }
        }
    }

    fn seat_is_refused_more(&self, client: &ServiceConnection) -> bool {
        client.who.seat.is_some_and(|seat| {
            let counts = self.ledger().seat_counts(self.board(), seat.index);
            client.is_refused_more(counts.shed)
        })
    }

    /// Whether a scope is one that refuses what comes.
    fn is_reached(&self, scope: ScopeId) -> bool {
        let board = self.board();
        if board.scope(scope.place).state == ScopeState::Overload {
            return true;
        }
        let held = self.ledger().scope_inflight(board, scope.place);
        let held = held.saturating_add(board.others(scope.place));
        self.limit_of(scope).is_some_and(|limit| held >= limit)
    }
}

#[cfg(test)]
mod tests;
