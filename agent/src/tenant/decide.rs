//! Decisions for callers that do not map the pages.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tidegate_abi::decision::{Class, Direction, Outcome};
use tidegate_segment::board::Slot;
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Gate, GateVerdict, Refusal, Request, Step, WaitingDecision};
use tidegate_segment::lane;
use tidegate_segment::sync::{Ordering, Word};

use super::proxy_seats::{ProxyPermit, SeatedCaller};
use super::scope_resolver::ScopeId;
use super::{HOST, Tenant};

/// How a caller waits where a rule lets wait.
#[derive(Debug, Clone, Copy)]
pub struct Waits<'w> {
    /// All waits together.
    at_most: Duration,
    /// Where a caller that waits by itself is told until when.
    told: Option<&'w Word>,
}

impl<'w> Waits<'w> {
    /// As the doors are shipped.
    #[cfg(test)]
    pub(crate) const HELD: Self = Self::at_most(Duration::from_secs(10));

    /// The task waits here, this long at most. A caller is refused where it would wait longer.
    pub const fn at_most(time: Duration) -> Self {
        Self {
            at_most: time,
            told: None,
        }
    }

    /// By itself: the word says until when, monotonic ns, and the decision is not ready before. It wakes
    /// nobody: whoever waits polls it again.
    #[must_use]
    pub const fn by_itself(self, told: &'w Word) -> Self {
        Self {
            told: Some(told),
            ..self
        }
    }
}

/// A request that waits; dropped before its turn, it puts back what it holds.
struct WaitingRequest<'t, 'a> {
    gate: &'t Gate,
    waiting: Option<WaitingDecision<'a>>,
}

impl<'a> WaitingRequest<'_, 'a> {
    /// When its turn is, monotonic ns.
    fn until_ns(&self) -> u64 {
        self.waiting.as_ref().map_or(0, WaitingDecision::until_ns)
    }

    /// Goes on with the request.
    fn resume(mut self) -> Option<Step<'a>> {
        let waiting = self.waiting.take()?;
        let lane = lane::current();
        Some(self.gate.resume(self.gate.board(), lane, &waiting))
    }

    /// Gives the request up.
    fn abandon(&mut self) -> GateVerdict {
        let Some(waiting) = self.waiting.take() else {
            return GateVerdict::Stale;
        };
        let lane = lane::current();
        self.gate.abandon(self.gate.board(), lane, &waiting)
    }
}

impl Drop for WaitingRequest<'_, '_> {
    fn drop(&mut self) {
        let _verdict: GateVerdict = self.abandon();
    }
}

impl Tenant {
    /// Decides on a request of a caller, and counts it in flight in the caller's seat.
    ///
    /// The gate checks the host and the scope of that seat. Where it is the agent's own, since none was left in the
    /// caller's scope, the allowed QPS of that scope stands for its limit.
    ///
    /// Where a rule lets wait, the caller waits that long, as far as `waits` allows.
    pub async fn enter(
        &self,
        caller: &SeatedCaller,
        slot: Slot,
        request: Request<'_>,
        waits: Waits<'_>,
    ) -> GateVerdict {
        if !caller.counts_in_its_scope()
            && let Err(refusal) = self.check_allowed_qps(caller, caller.caller.scope, slot, request)
        {
            return GateVerdict::Refused(refusal);
        }
        if let Err(refusal) = self.check_share(caller, request) {
            self.count_refusal(caller.gate(self.gate()), slot, &refusal);
            return GateVerdict::Refused(refusal);
        }
        self.ask(caller, slot, request, waits).await
    }

    async fn ask(
        &self,
        caller: &SeatedCaller,
        slot: Slot,
        request: Request<'_>,
        waits: Waits<'_>,
    ) -> GateVerdict {
        let (board, gate) = (self.board(), caller.gate(self.gate()));
        let mut step = gate.enter(board, lane::current(), slot, request);
        let mut left = waits.at_most;
        loop {
            let waiting = match step {
                Step::Done(verdict) => {
                    self.note_refused(caller, &verdict);
                    return verdict;
                }
                Step::Wait(waiting) => waiting,
            };
            let mut held = WaitingRequest {
                gate,
                waiting: Some(waiting),
            };
            let wait_ns = held.until_ns().saturating_sub(board.now_ns());
            let wait = Duration::from_nanos(wait_ns);
            let Some(rest) = left.checked_sub(wait) else {
                return held.abandon();
            };
            left = rest;
            match waits.told {
                None => tokio::time::sleep(wait).await,
                Some(told) => self.turn(held.until_ns(), told).await,
            }
            match held.resume() {
                Some(next) => step = next,
                None => return GateVerdict::Stale,
            }
        }
    }

    /// Ready once polled at its time or later.
    async fn turn(&self, until_ns: u64, told: &Word) {
        // Relaxed: whoever polls reads it.
        told.store(until_ns, Ordering::Relaxed);
        let is_time = || self.board().now_ns() >= until_ns;
        poll_fn(|_nobody_is_woken| {
            if is_time() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Gives an admitted request back.
    #[inline]
    pub fn exit(&self, permit: impl Into<ProxyPermit>, outcome: Outcome) {
        let permit = permit.into();
        let gate = permit.gate(self.gate());
        gate.exit(self.board(), lane::current(), permit.pass, outcome);
    }

    /// Decides once and holds nothing. Nothing of it will be in flight, so the allowed QPS of the
    /// host holds as well as that of the scope.
    pub async fn admit_once(
        &self,
        caller: &SeatedCaller,
        slot: Slot,
        request: Request<'_>,
        waits: Waits<'_>,
    ) -> GateVerdict {
        let own = caller.caller.scope;
        let scopes = [
            Some(ScopeId::HOST),
            Some(own).filter(|own| own.place != HOST),
        ];
        for scope in scopes.into_iter().flatten() {
            if let Err(refusal) = self.check_allowed_qps(caller, scope, slot, request) {
                return GateVerdict::Refused(refusal);
            }
        }
        let verdict = self.ask(caller, slot, request, waits).await;
        if let GateVerdict::Admitted(pass) = verdict {
            self.exit(caller.short_permit(pass), Outcome::Ignore);
        }
        verdict
    }

    fn check_allowed_qps(
        &self,
        caller: &SeatedCaller,
        scope: ScopeId,
        slot: Slot,
        request: Request<'_>,
    ) -> Result<(), Refusal> {
        let Request {
            direction, class, ..
        } = request;
        // Probes are counted and held to their budget by the gate.
        if direction != Direction::In || class == Class::Probe {
            return Ok(());
        }
        let part = |now_ns, limit_milli| {
            let mut callers = self.callers.lock();
            let of_scope = callers.entry(scope.place).or_default();
            of_scope.admit(caller.caller, now_ns, limit_milli)
        };
        let gate = caller.gate(self.gate());
        gate.admit_one_shot_by(self.board(), scope.place, part)
            .inspect_err(|refusal| self.count_refusal(gate, slot, refusal))
    }

    /// The gate counts its own refusals; this one came before it.
    #[cold]
    fn count_refusal(&self, gate: &Gate, slot: Slot, refusal: &Refusal) {
        let generation = self.board().seat(gate.seat()).generation;
        let Some(row) = gate.ledger().row(gate.seat(), generation, lane::current()) else {
            return;
        };
        let Some(cell) = row.cell(slot) else { return };
        if !cell.used() {
            row.totals().mark_used();
        }
        cell.refused(refusal.kind, 1);
        row.totals().refused(true);
    }
}

#[cfg(test)]
mod tests {
    use tidegate_abi::board::ScopeWord;
    use tidegate_abi::decision::{Cause, LossMode, Reason, RefusalKind, ScopeState};
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::board::{PublishedScope, TickWriter};

    use super::*;
    use crate::tenant::TenantSettings;
    use crate::tenant::callers::Caller;

    fn overloaded(scope: u32) -> Tenant {
        let (tenant, mut tick) = two_scopes();
        publish(&mut tick, scope, ScopeState::Overload);
        tenant
    }

    fn two_scopes() -> (Tenant, TickWriter) {
        let settings = TenantSettings {
            geometry: Geometry::new(8, 2, 2, 2).unwrap(),
            time_to_live_ns: u64::MAX,
            grace_ns: 0,
            loss_mode: LossMode::Open,
        };
        Tenant::create(&settings).unwrap()
    }

    fn publish(tick: &mut TickWriter, scope: u32, state: ScopeState) {
        let report = PublishedScope {
            word: ScopeWord {
                state,
                ..ScopeWord::OPEN
            },
            allowed_qps_milli: 0,
            cause: Cause::Cpu,
            since_ns: 0,
            inflight: 0,
        };
        assert!(tick.publish_scope(scope, &report));
    }

    #[tokio::test]
    async fn the_allowed_qps_of_the_callers_scope_is_enforced_and_counted() {
        let tenant = overloaded(1);
        let slot = tenant.directory().resolve("a").slot;
        let GateVerdict::Refused(refusal) = tenant
            .enter(
                &Caller::in_scope(ScopeId::first_at(1)).into(),
                slot,
                Request::default(),
                Waits::HELD,
            )
            .await
        else {
            panic!("refused");
        };
        assert_eq!(
            (refusal.kind, refusal.reason),
            (RefusalKind::System, Reason::AllowedQps)
        );
        assert_eq!(tenant.seats().scope_counts(0).shed, 1);
        let outbound = Request {
            direction: Direction::Out,
            ..Request::default()
        };
        for (scope, request) in [(0, Request::default()), (1, outbound)] {
            let GateVerdict::Admitted(pass) = tenant
                .enter(
                    &Caller::in_scope(ScopeId::first_at(scope)).into(),
                    slot,
                    request,
                    Waits::HELD,
                )
                .await
            else {
                panic!("admitted");
            };
            tenant.exit(pass, Outcome::Ok);
        }
        let counts = tenant.seats().node_counts(slot);
        assert_eq!((counts.inflight, counts.passed), (0, 2));
    }

    #[tokio::test]
    async fn a_scope_that_rejects_admits_no_caller_of_a_socket() {
        let (tenant, mut tick) = two_scopes();
        publish(&mut tick, 1, ScopeState::Reject);
        let slot = tenant.directory().resolve("a").slot;
        let GateVerdict::Refused(refusal) = tenant
            .enter(
                &Caller::in_scope(ScopeId::first_at(1)).into(),
                slot,
                Request::default(),
                Waits::HELD,
            )
            .await
        else {
            panic!("refused");
        };
        assert_eq!(refusal.reason, Reason::Reject);
    }

    #[tokio::test]
    async fn deciding_once_holds_nothing_and_looks_at_the_host() {
        let tenant = overloaded(1);
        let slot = tenant.directory().resolve("a").slot;
        let verdict = tenant
            .admit_once(&Caller::HOST.into(), slot, Request::default(), Waits::HELD)
            .await;
        assert!(matches!(verdict, GateVerdict::Admitted(_)), "{verdict:?}");
        assert_eq!(tenant.seats().node_counts(slot).inflight, 0);
        let tenant = overloaded(0);
        let slot = tenant.directory().resolve("a").slot;
        let verdict = tenant
            .admit_once(&Caller::HOST.into(), slot, Request::default(), Waits::HELD)
            .await;
        assert!(matches!(verdict, GateVerdict::Refused(_)), "{verdict:?}");
    }
}
