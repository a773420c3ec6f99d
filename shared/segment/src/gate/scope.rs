//! The system step: state and limits of the caller's scopes.

use tidegate_abi::board::{CalmWord, ScopeWord, ShareWord, seat};
use tidegate_abi::decision::{Class, Direction, LossMode, Outcome, Reason, ScopeState};
use tidegate_limits::fairness::{self, InFlightCounts, OverloadLimits, ServiceShare};
use tidegate_limits::law::{FAR_OVER, is_surge};

use super::{Ask, ClassAndOrigin, Gate, Pass, Refusal};
use crate::board::{AgentLife, ScopeBacklog};
use crate::lane::{self, Lane};
use crate::ledger::{ScopesHeld, Totals};
use crate::sync::Ordering;

/// The host's place among the scopes.
pub(super) const HOST: u32 = 0;

/// While a scope is far from its entry limit, a lane sums what is in flight before one in this many admissions;
/// from half the limit on before each, until it finds less.
const LOOK_AFTER: u64 = 64;

/// What the scopes take of an inbound request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScopeQuestion {
    pub(super) now_ns: u64,
    /// Of its lane.
    pub(super) totals: Totals,
    pub(super) caller: ClassAndOrigin,
    /// What the caller knows to wait in its own accept queue.
    pub(super) waiting: Option<u32>,
}

impl Gate {
    /// Checks the host and the caller's own scope. Mostly both are calm, which takes a few loads.
    #[inline(always)]
    pub(super) fn check_scopes<C>(&self, ask: &Ask<'_, C>) -> Result<(), Refusal> {
        let totals = ask.books.totals;
        if self.is_calm_seat(ask.now_ns, totals) {
            return Ok(());
        }
        self.check_scopes_closely(&ScopeQuestion {
            now_ns: ask.now_ns,
            totals,
            caller: ClassAndOrigin::of(ask.request),
            waiting: ask.request.waiting,
        })
    }

    /// Whether the agent said of this seat lately that its scopes admit without a look, and none is due.
    #[inline(always)]
    pub(super) fn is_calm_seat(&self, now_ns: u64, totals: Totals) -> bool {
        self.holds_calm(self.calm_word(), now_ns) && !totals.looks()
    }

    /// What the agent said of this seat's scopes last, see [`CalmWord`].
    #[inline(always)]
    pub(super) fn calm_word(&self) -> u64 {
        // Relaxed: one word says it all.
        self.chair[seat::CALM].load(Ordering::Relaxed)
    }

    /// Whether a calm word is of this seat and of lately.
    #[inline(always)]
    pub(super) fn holds_calm(&self, calm: u64, now_ns: u64) -> bool {
        CalmWord::holds(calm, self.holder, now_ns)
    }

    /// The look that is due in a calm seat: whether host and own scope are far from their entry limits. Where they are not,
    /// the long way looks closer.
    #[cold]
    #[inline(never)]
    pub(super) fn finds_room(&self, lane: Lane) -> bool {
        let Some(totals) = self.rows.row(lane).map(|row| row.totals()) else {
            return false;
        };
        let own = self.own_scope();
        let words = [HOST, own].map(|scope| self.board.scope_word(scope));
        // Most scopes of a calm host are open; only others are worth the sums.
        let has_room = words.into_iter().all(ScopeWord::is_open) || {
            let held = self.held(own, None);
            let mut parts = words.into_iter().zip([held.host, held.own]);
            parts.all(|(word, held)| has_room(word, held))
        };
        if has_room {
            totals.look_after(LOOK_AFTER);
        }
        has_room
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

    /// What the host and the caller's own scope hold, and of that the caller's service: in flight, or waiting to be
    /// accepted (the law's N). A scope's has what other tenants held in the last tick. `known` = what the caller knows
    /// to wait in its own accept queue.
    fn held(&self, own: u32, known: Option<u32>) -> ScopesHeld {
        let held = self.ledger.scopes_held(&self.board, self.seat);
        let in_host = self.board.beside(HOST);
        let in_own = if own == HOST {
            in_host
        } else {
            self.board.beside(own)
        };
        // A service without a cgroup of its own that shows no listener is taken for the one that they
        // wait for: nothing tells whose they are.
        let of_own = known.unwrap_or(in_own.waiting);
        let with_queue = |held: InFlightCounts, beside: ScopeBacklog| {
            let waiting = known.unwrap_or(beside.waiting);
            let all = held.all.saturating_add(waiting);
            InFlightCounts {
                all: all.saturating_add(beside.others),
                own: held.own.saturating_add(of_own),
            }
        };
        ScopesHeld {
            host: with_queue(held.host, in_host),
            own: with_queue(held.own, in_own),
        }
    }

    /// The same where the seat is not calm.
    ///
    /// # Errors
    /// A scope refuses.
    pub(super) fn check_scopes_closely(&self, arrival: &ScopeQuestion) -> Result<(), Refusal> {
        match self.board.agent_life(arrival.now_ns) {
            AgentLife::Present | AgentLife::Grace | AgentLife::Lost(LossMode::Last) => {}
            AgentLife::Lost(mode) => return self.check_without_agent(mode, arrival),
        }
        let totals = arrival.totals;
        let looks = totals.looks();
        if looks {
            // Unless one of the scopes is near.
            totals.look_after(LOOK_AFTER);
        }
        let own = self.own_scope();
        let host_word = self.board.scope(HOST);
        let own_word = (own != HOST).then(|| self.board.scope(own));
        let held = if counts(host_word, looks) || own_word.is_some_and(|word| counts(word, looks)) {
            self.held(own, arrival.waiting)
        } else {
            ScopesHeld::default()
        };
        self.check_scope(HOST, (host_word, held.host), looks, arrival)?;
        match own_word {
            Some(word) => self.check_scope(own, (word, held.own), looks, arrival),
            None => Ok(()),
        }
    }

    #[cold]
    fn check_without_agent(&self, mode: LossMode, arrival: &ScopeQuestion) -> Result<(), Refusal> {
        self.ledger.count_without_agent(self.seat);
        match mode {
            LossMode::Open | LossMode::Last => Ok(()),
            LossMode::Closed => shed(arrival, Refusal::scope(Reason::AgentLost, 0, 0)),
        }
    }

    #[inline(always)]
    fn check_scope(
        &self,
        scope: u32,
        (word, held): (ScopeWord, InFlightCounts),
        looks: bool,
        arrival: &ScopeQuestion,
    ) -> Result<(), Refusal> {
        let verdict = match word.state {
            ScopeState::Healthy | ScopeState::Cold if counts(word, looks) => {
                self.check_healthy(scope, (word, held), arrival)
            }
            ScopeState::Healthy | ScopeState::Cold => Ok(()),
            ScopeState::Overload => self.check_overload(scope, (word, held), arrival),
            ScopeState::Reject => Err(Refusal::scope(Reason::Reject, 0, 0)),
        };
        match verdict {
            Ok(()) => Ok(()),
            Err(_refusal) if word.observe => {
                self.ledger.count_observed(scope);
                Ok(())
            }
            Err(refusal) => shed(arrival, refusal),
        }
    }

    /// The entry check of the law's two limits, without waiting for a tick: overload begins when the
    /// wide limit is reached and the CPU is short or it was reached in a surge, or far over it in any case. The limit
    /// of a cold scope is a guess, so far over it alone says nothing there.
    #[inline(always)]
    fn check_healthy(
        &self,
        scope: u32,
        (word, held): (ScopeWord, InFlightCounts),
        arrival: &ScopeQuestion,
    ) -> Result<(), Refusal> {
        if held.all >= word.entry / 2 {
            arrival.totals.look_each_time();
        }
        let far =
            word.state == ScopeState::Healthy && held.all >= word.entry.saturating_mul(FAR_OVER);
        if held.all >= word.entry
            && (word.short || far || self.surges(scope, held.all, arrival.now_ns))
        {
            let admitted = fairness::admits_at_entry(limits(word), arrival.caller.class, held);
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
    #[inline(always)]
    fn check_overload(
        &self,
        scope: u32,
        (word, held): (ScopeWord, InFlightCounts),
        arrival: &ScopeQuestion,
    ) -> Result<(), Refusal> {
        if word.entry >= ScopeWord::LIMIT_MAX {
            // Not the adaptive law, or next to nothing is offered: one limit for all.
            return verdict(held.all < word.tight, held.all, word.tight);
        }
        let ClassAndOrigin { class, origin } = arrival.caller;
        let keyed = origin != 0;
        // Who cannot be told apart is cut at random.
        let key = if keyed { origin } else { arrival.now_ns };
        let level = fairness::level(class, key);
        let cutoff = self.board.scope_cutoff(scope);
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

/// Whether a scope admits without a closer look.
const fn has_room(word: u64, held: InFlightCounts) -> bool {
    ScopeWord::is_open(word)
        || (ScopeWord::is_calm(word) && held.all < ScopeWord::unpack(word).entry / 2)
}

/// Whether what a scope holds is to be summed for a decision.
const fn counts(word: ScopeWord, looks: bool) -> bool {
    match word.state {
        ScopeState::Healthy | ScopeState::Cold => {
            (looks || word.near) && word.entry < ScopeWord::LIMIT_MAX
        }
        ScopeState::Overload => true,
        ScopeState::Reject => false,
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
fn shed(arrival: &ScopeQuestion, refusal: Refusal) -> Result<(), Refusal> {
    let ScopeQuestion { now_ns, totals, .. } = *arrival;
    if matches!(arrival.caller.class, Class::Probe) && totals.takes_probe(now_ns) {
        return Ok(());
    }
    Err(refusal.spread(now_ns))
}
