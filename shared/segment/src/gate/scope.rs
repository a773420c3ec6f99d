//! The system step: state and limits of the caller's scopes.

use tidegate_abi::board::{CalmWord, ScopeWord, ShareWord, seat};
use tidegate_abi::decision::{Class, Direction, LossMode, Outcome, Reason, ScopeState};
use tidegate_limits::fairness::{self, InFlightCounts, OverloadLimits, ServiceShare};
use tidegate_limits::law::{FAR_OVER, is_surge};

use super::{Ask, Gate, Pass, Refusal};
use crate::board::AgentLife;
use crate::lane::{self, Lane};
use crate::ledger::Totals;
use crate::sync::Ordering;

/// The host's place among the scopes.
pub(super) const HOST: u32 = 0;

/// While a scope is far from its entry limit, a lane sums what is in flight before one in this many admissions;
/// from half the limit on before each, until it finds less.
const LOOK_AFTER: u64 = 64;

impl Gate {
    /// Checks the host and the caller's own scope. Mostly both are calm, which takes a few loads.
    #[inline(always)]
    pub(super) fn check_scopes<C>(&self, ask: &Ask<'_, C>) -> Result<(), Refusal> {
        if self.is_calm_seat(ask.now_ns, ask.books.totals) {
            return Ok(());
        }
        self.check_scopes_closely(ask, self.own_scope())
    }

    /// Whether the agent said of this seat lately that its scopes admit without a look, and none is due.
    #[inline(always)]
    pub(super) fn is_calm_seat(&self, now_ns: u64, totals: Totals) -> bool {
        // Relaxed: one word says it all.
        let word = self.chair[seat::CALM].load(Ordering::Relaxed);
        CalmWord::holds(word, self.holder, now_ns) && !totals.looks()
    }

    /// Whether the look that [`Gate::is_calm_seat`] left to be taken finds the host and the caller's own scope
    /// far from their entry limits; where it does not, the long way looks closer.
    #[cold]
    #[inline(never)]
    pub(super) fn scopes_have_room(&self, now_ns: u64, lane: Lane) -> bool {
        let Some(totals) = self.rows.row(lane).map(|row| row.totals()) else {
            return false;
        };
        let own = self.own_scope();
        let has_room = self.seated()
            && self.board.agent_is_present(now_ns)
            && (!totals.looks_each_time() || !self.is_limited(own))
            && self.has_room(HOST)
            && (own == HOST || self.has_room(own));
        if has_room && totals.looks() {
            totals.look_after(LOOK_AFTER);
        }
        has_room
    }

    /// Whether the host or the caller's own scope has a limit at all.
    fn is_limited(&self, own: u32) -> bool {
        ![HOST, own]
            .map(|scope| self.board.scope_word(scope))
            .into_iter()
            .all(ScopeWord::is_open)
    }

    fn has_room(&self, scope: u32) -> bool {
        let word = self.board.scope_word(scope);
        let is_far = || self.held(scope, None).all < ScopeWord::unpack(word).entry / 2;
        ScopeWord::is_open(word) || (ScopeWord::is_at_rest(word) && is_far())
    }

    /// Takes an admitted request out of what its scopes hold. Until it is given back it goes on to hold what rules gave
    /// it; its end then counts for its resource alone.
    pub fn set_aside(&self, lane: Lane, pass: &mut Pass) {
        if !matches!(pass.direction, Direction::In) || !self.seated() {
            return;
        }
        if let Some(books) = self.books(lane::taken(lane), pass.slot) {
            books.totals.ended(Outcome::Ignore, 0);
            pass.direction = Direction::Out;
        }
    }

    /// Whether a scope of the caller counts at each decision. Who knows its own accept queue looks at it
    /// then, since the board's count is a tick old.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        let own = self.board.seat_scope(self.seat);
        !ScopeWord::is_calm(self.board.scope_word(HOST))
            || (own != HOST && !ScopeWord::is_calm(self.board.scope_word(own)))
    }

    /// What a scope and the caller's service in it hold: in flight, or waiting to be accepted (the law's N).
    /// The scope's has what other tenants held in the last tick. `known` = what the caller knows to wait in its
    /// own accept queue.
    fn held(&self, scope: u32, known: Option<u32>) -> InFlightCounts {
        let held = self.ledger.scope_held(&self.board, scope, self.seat);
        let waiting = known.unwrap_or_else(|| self.board.accept_queue(scope));
        // A service without a cgroup of its own that shows no listener is taken for the one that they
        // wait for: nothing tells whose they are.
        let own = self.board.seat_scope(self.seat);
        let of_own = known.unwrap_or_else(|| self.board.accept_queue(own));
        let others = self.board.others(scope);
        InFlightCounts {
            all: held.all.saturating_add(waiting).saturating_add(others),
            own: held.own.saturating_add(of_own),
        }
    }

    #[inline(never)]
    fn check_scopes_closely<C>(&self, ask: &Ask<'_, C>, own: u32) -> Result<(), Refusal> {
        match self.board.agent_life(ask.now_ns) {
            AgentLife::Present | AgentLife::Grace | AgentLife::Lost(LossMode::Last) => {}
            AgentLife::Lost(LossMode::Open) => {
                self.ledger.count_without_agent(self.seat);
                return Ok(());
            }
            AgentLife::Lost(LossMode::Closed) => {
                self.ledger.count_without_agent(self.seat);
                return shed(ask, Refusal::scope(Reason::AgentLost, 0, 0));
            }
        }
        let totals = ask.books.totals;
        let looks = totals.looks();
        if looks {
            // Unless one of the scopes is near.
            totals.look_after(LOOK_AFTER);
        }
        self.check_scope(HOST, looks, ask)?;
        if own == HOST {
            return Ok(());
        }
        self.check_scope(own, looks, ask)
    }

    fn check_scope<C>(&self, scope: u32, looks: bool, ask: &Ask<'_, C>) -> Result<(), Refusal> {
        let word = self.board.scope(scope);
        let verdict = match word.state {
            ScopeState::Healthy | ScopeState::Cold if looks || word.near => {
                self.check_healthy(scope, word, ask)
            }
            ScopeState::Healthy | ScopeState::Cold => Ok(()),
            ScopeState::Overload => self.check_overload(scope, word, ask),
            ScopeState::Reject => Err(Refusal::scope(Reason::Reject, 0, 0)),
        };
        match verdict {
            Ok(()) => Ok(()),
            Err(_refusal) if word.observe => {
                self.ledger.count_observed(scope);
                Ok(())
            }
            Err(refusal) => shed(ask, refusal),
        }
    }

    /// The entry check of the law's two limits, without waiting for a tick: overload begins when the
    /// wide limit is reached and the CPU is short or it was reached in a surge, or far over it in any case. The limit
    /// of a cold scope is a guess, so far over it alone says nothing there.
    #[inline(always)]
    fn check_healthy<C>(
        &self,
        scope: u32,
        word: ScopeWord,
        ask: &Ask<'_, C>,
    ) -> Result<(), Refusal> {
        if word.entry >= ScopeWord::LIMIT_MAX {
            return Ok(());
        }
        let held = self.held(scope, ask.request.waiting);
        if held.all >= word.entry / 2 {
            ask.books.totals.look_each_time();
        }
        let far =
            word.state == ScopeState::Healthy && held.all >= word.entry.saturating_mul(FAR_OVER);
        if held.all >= word.entry && (word.short || far || self.surges(scope, held.all, ask.now_ns))
        {
            let admitted = fairness::admits_at_entry(limits(word), ask.request.class, held);
            return verdict(admitted, held.all, word.tight);
        }
        Ok(())
    }

    /// Whether more arrives than the scope can do, by how what it holds has grown since the last tick.
    #[cold]
    #[inline(never)]
    fn surges(&self, scope: u32, held: u32, now_ns: u64) -> bool {
        let (before, span_ns) = self.board.surge(scope, now_ns);
        is_surge(before, held, span_ns)
    }

    /// The tight limit of a scope in overload, divided among classes and services.
    fn check_overload<C>(
        &self,
        scope: u32,
        word: ScopeWord,
        ask: &Ask<'_, C>,
    ) -> Result<(), Refusal> {
        if word.entry >= ScopeWord::LIMIT_MAX {
            // Not the adaptive law, or next to nothing is offered: one limit for all.
            let held = self.held(scope, ask.request.waiting).all;
            return verdict(held < word.tight, held, word.tight);
        }
        let (class, origin) = (ask.request.class, ask.request.origin.hash);
        let keyed = origin != 0;
        // Who cannot be told apart is cut at random.
        let key = if keyed { origin } else { ask.now_ns };
        let level = fairness::level(class, key);
        let cutoff = self.board.scope_cutoff(scope);
        let held = self.held(scope, ask.request.waiting);
        let share = self.board.seat_share(self.seat, scope == HOST);
        let share = share.map_or(ServiceShare::ALL, |ShareWord { guaranteed, limit }| {
            ServiceShare { guaranteed, limit }
        });
        let admitted = fairness::admits(limits(word), share, level, cutoff, held);
        let under = (!admitted).then_some(level < cutoff);
        self.ledger.count_offered(scope, class, keyed, under);
        verdict(admitted, held.all, word.tight)
    }
}

const fn limits(word: ScopeWord) -> OverloadLimits {
    OverloadLimits {
        tight: word.tight,
        entry: word.entry,
    }
}

#[inline(always)]
fn verdict(admitted: bool, held: u32, tight: u32) -> Result<(), Refusal> {
    if admitted {
        return Ok(());
    }
    Err(Refusal::scope(Reason::Overload, held, tight))
}

/// A probe within its budget is let through, everything else is refused.
#[cold]
fn shed<C>(ask: &Ask<'_, C>, refusal: Refusal) -> Result<(), Refusal> {
    if matches!(ask.request.class, Class::Probe) && ask.books.totals.takes_probe(ask.now_ns) {
        return Ok(());
    }
    Err(refusal.spread(ask.now_ns))
}
