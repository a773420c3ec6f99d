//! Who goes first in a scope in overload: the cut-off of each tenant, and the shares of the services.
//!
//! A service is, in the host, what shares a cgroup of its own, and elsewhere what shares a process
//! name: so several processes of one service are one. Tenants are never one service.

use tidegate_abi::board::{ScopeWord, ShareWord};
use tidegate_abi::decision::ScopeState;
use tidegate_limits::fairness::OverloadLimits;
use tidegate_limits::fairness::cutoff::{ClassArrivals, Cutoff};
use tidegate_limits::fairness::share::{self, ShareMember};

use super::counts::{Counts, SeatTick};
use super::pages::TenantPages;
use super::plan::Weights;
use crate::tenant::HOST;

/// Most requests of a tick that are believed of a ledger.
const MOST_OFFERED: u64 = 1_000_000_000;

/// A seat in the division of a scope.
#[derive(Debug, Clone, Copy)]
struct DividedSeat {
    service: Service,
    tenant: usize,
    seat: u32,
    tick: SeatTick,
}

/// What the law has said of a scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedScope {
    pub word: ScopeWord,
    /// Requests that it can do in a whole tick; `None` before there is history.
    pub capacity: Option<f64>,
    /// Whether a whole tick has passed since shares and cut-offs were moved.
    pub whole: bool,
}

impl JudgedScope {
    /// Whether decisions look at shares and cut-off, as the gate has it.
    fn is_divided(&self) -> bool {
        self.word.state == ScopeState::Overload && self.word.entry < ScopeWord::LIMIT_MAX
    }
}

/// A service in a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Service {
    /// All processes of this scope.
    Scope { tenant: usize, scope: u32 },
    /// The processes with this hash of their name.
    Name { tenant: usize, name: u64 },
}

/// A scope of one tenant.
#[derive(Debug, Clone, Copy, Default)]
struct Inbound {
    cutoff: Cutoff,
    /// Counts of the ledger at the last tick.
    before: ClassArrivals,
}

/// The cut-offs and shares of every scope.
#[derive(Debug)]
pub(super) struct Fairness {
    /// In the order of the tenants, then of the scopes.
    inbound: Vec<Box<[Inbound]>>,
    /// Whether a scope was in overload in the last tick.
    divided: Box<[bool]>,
    /// Weight of each scope as a service of the host.
    pub scope_weights: Box<[f64]>,
    /// Weights of services by name.
    pub weights: Weights,
    /// Room to work in, so that a tick allocates nothing.
    seated: Vec<DividedSeat>,
    members: Vec<ShareMember>,
}

impl Fairness {
    /// For these tenants and so many scopes.
    pub(super) fn new(pages: &[TenantPages], scopes: usize) -> Self {
        let seats = pages.iter().map(|page| page.ledger.geometry().seats());
        let seats: usize = seats.map(|seats| usize::try_from(seats).unwrap_or(0)).sum();
        let inbound = pages
            .iter()
            .map(|_page| vec![Inbound::default(); scopes].into());
        Self {
            inbound: inbound.collect(),
            divided: vec![false; scopes].into(),
            scope_weights: vec![1.0; scopes].into(),
            weights: Weights::default(),
            seated: Vec::with_capacity(seats),
            members: Vec::with_capacity(seats),
        }
    }

    /// Publishes cut-offs and shares of a scope whose decision word is about to be published.
    pub(super) fn publish(
        &mut self,
        scope: u32,
        judged: &JudgedScope,
        counts: &Counts,
        pages: &mut [TenantPages],
    ) {
        let overload = judged.is_divided();
        let Some(divided) = place(scope).and_then(|at| self.divided.get_mut(at)) else {
            return;
        };
        let before = std::mem::replace(divided, overload);
        let changed = overload != before;
        if !(changed || (overload && judged.whole)) {
            return;
        }
        self.seat(scope, counts, pages);
        self.move_cutoffs(scope, judged, pages);
        self.divide(judged);
        let all = self.members.len() < 2;
        // Members are in the order of the services, as the seats are.
        let mut members = self.members.iter();
        let mut last = None;
        let mut share = None;
        for seated in &self.seated {
            if last != Some(seated.service) {
                last = Some(seated.service);
                share = members.next().map(|member| member.share);
            }
            let word = share
                .filter(|_share| overload && !all)
                .map(|share| ShareWord {
                    guaranteed: share.guaranteed,
                    limit: share.limit,
                });
            if let Some(page) = pages.get_mut(seated.tenant) {
                page.writer.publish_share(seated.seat, scope == HOST, word);
            }
        }
    }

    /// The cut-off of the first tenant in a scope; `None` = nothing is cut.
    pub(super) fn cutoff(&self, scope: usize) -> Option<u32> {
        let inbound = self.inbound.first()?.get(scope)?;
        let level = inbound.cutoff.level();
        (level < tidegate_limits::fairness::LEVELS).then_some(level)
    }

    fn move_cutoffs(&mut self, scope: u32, judged: &JudgedScope, pages: &mut [TenantPages]) {
        let overload = judged.is_divided();
        let held = self.seated.iter().map(|seated| seated.tick.held);
        let held = held.fold(0_u32, u32::saturating_add);
        let drains = held > judged.word.tight.saturating_mul(2);
        let draining = judged.capacity.filter(|_capacity| drains);
        for (page, inbound) in pages.iter_mut().zip(&mut self.inbound) {
            let Some(inbound) = place(scope).and_then(|at| inbound.get_mut(at)) else {
                continue;
            };
            let now = page.ledger.inlet(scope);
            let tick = growth(&now, &inbound.before);
            inbound.before = now;
            let level = if overload {
                inbound.cutoff.step(&tick, draining).max(1)
            } else {
                inbound.cutoff.release();
                0
            };
            page.writer.publish_cutoff(scope, level);
        }
    }

    /// Takes down the seats of a scope in the order of their services.
    fn seat(&mut self, scope: u32, counts: &Counts, pages: &[TenantPages]) {
        self.seated.clear();
        for (tenant, page) in pages.iter().enumerate() {
            let board = page.writer.board();
            let ticks = counts.seats_of(tenant);
            for (seat, tick) in (0..board.seats_used()).zip(ticks) {
                let own = board.seat_scope(seat);
                if !board.seat(seat).live || (scope != HOST && own != scope) {
                    continue;
                }
                let service = if scope == HOST && own != HOST {
                    Service::Scope { tenant, scope: own }
                } else {
                    Service::Name {
                        tenant,
                        name: board.seat_service(seat),
                    }
                };
                self.seated.push(DividedSeat {
                    service,
                    tenant,
                    seat,
                    tick: *tick,
                });
            }
        }
        self.seated.sort_unstable_by_key(|seated| seated.service);
    }

    /// Makes the seats' services members, and divides the limit among them.
    fn divide(&mut self, judged: &JudgedScope) {
        self.members.clear();
        let same = |one: &DividedSeat, other: &DividedSeat| one.service == other.service;
        for seats in self.seated.chunk_by(same) {
            let Some(first) = seats.first() else { continue };
            let weight = match first.service {
                Service::Scope { scope, .. } => {
                    let weight = place(scope).and_then(|at| self.scope_weights.get(at));
                    weight.copied().unwrap_or(1.0)
                }
                Service::Name { name, .. } => self.weights.of(name),
            };
            let mut member = ShareMember::new(weight);
            for SeatTick { held, asked } in seats.iter().map(|seated| seated.tick) {
                member.held = member.held.saturating_add(held);
                member.asked.add(&asked);
            }
            self.members.push(member);
        }
        let ScopeWord { tight, entry, .. } = judged.word;
        share::divide(
            OverloadLimits { tight, entry },
            judged.capacity,
            &mut self.members,
        );
    }
}

fn place(scope: u32) -> Option<usize> {
    usize::try_from(scope).ok()
}

/// What the counts of a ledger grew by; nobody is believed to have offered more than is possible.
fn growth(now: &ClassArrivals, before: &ClassArrivals) -> ClassArrivals {
    let grown = |now: u64, before: u64| now.wrapping_sub(before).min(MOST_OFFERED);
    let mut offered = now.offered;
    for (now, before) in offered.iter_mut().zip(before.offered) {
        *now = grown(*now, before);
    }
    ClassArrivals {
        offered,
        keyed: grown(now.keyed, before.keyed),
        refused: grown(now.refused, before.refused),
        refused_under: grown(now.refused_under, before.refused_under),
    }
}
