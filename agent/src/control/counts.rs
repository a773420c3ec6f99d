//! What the services did since the last tick, for each scope.
//!
//! Each seat is followed for itself and its growth goes to the scope it is in. So the growth of a
//! scope stays right when a seat is cleared, given to the next process or moved to another scope;
//! the difference of two sums over seats would not. What a process did between the last tick and
//! the clearing of its seat is not seen here: at most one tick of a process that has ended.

use tidegate_limits::fairness::share::ServiceDemand;
use tidegate_segment::ledger::{Ledger, ScopeCounts};

use super::pages::TenantPages;
use crate::tenant::HOST;

/// What a seat did in a tick.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SeatTick {
    /// Requests that it holds.
    pub held: u32,
    /// What it asked for lately.
    pub asked: ServiceDemand,
}

/// Follows the counts of every seat of all tenants.
#[derive(Debug)]
pub(super) struct Counts {
    /// What each seat had counted at the last tick, in the order of the tenants and the seats.
    seats: Vec<Box<[ScopeCounts]>>,
    /// What each seat did in the last tick, in the same order.
    ticks: Vec<Box<[SeatTick]>>,
    /// Growth since the last tick and requests in flight, in the order of the scopes.
    scopes: Box<[ScopeCounts]>,
    /// The same of the host alone, in the order of the tenants.
    tenants: Box<[ScopeCounts]>,
    /// Requests in flight, in the order of the tenants and the scopes.
    held: Vec<Box<[u64]>>,
    /// Callers without a permit: what the ledgers had counted, and the growth, of each scope.
    one_shots: Box<[(u64, u64)]>,
    /// The same of requests that a scope would have refused if it did not only observe.
    observed: Box<[(u64, u64)]>,
}

impl Counts {
    /// Begins with what is counted now; `scopes` is one more than the highest place.
    pub(super) fn new(pages: &[TenantPages], scopes: usize) -> Self {
        let seats = pages.iter().map(|page| {
            let board = page.writer.board();
            let seats = 0..page.ledger.geometry().seats();
            seats
                .map(|seat| page.ledger.seat_counts(&board, seat))
                .collect()
        });
        let seats: Vec<Box<[ScopeCounts]>> = seats.collect();
        let ticks = seats
            .iter()
            .map(|seats| vec![SeatTick::default(); seats.len()].into());
        Self {
            ticks: ticks.collect(),
            seats,
            scopes: vec![ScopeCounts::default(); scopes].into(),
            tenants: pages.iter().map(|_page| ScopeCounts::default()).collect(),
            held: pages.iter().map(|_page| vec![0; scopes].into()).collect(),
            one_shots: vec![(0, 0); scopes].into(),
            observed: vec![(0, 0); scopes].into(),
        }
    }

    /// Takes a tick's counts, `part` of a whole tick: one pass over the seats that were ever used.
    pub(super) fn take(&mut self, pages: &[TenantPages], part: f64) {
        self.scopes.fill(ScopeCounts::default());
        follow(&mut self.one_shots, pages, Ledger::one_shots);
        follow(&mut self.observed, pages, Ledger::observed);
        let tenants = pages.iter().zip(&mut self.seats).zip(&mut self.ticks);
        let tenants = tenants.zip(&mut self.held).zip(&mut self.tenants);
        for ((((page, seats), ticks), held), own) in tenants {
            held.fill(0);
            *own = ScopeCounts::default();
            let board = page.writer.board();
            let seats = seats.iter_mut().zip(ticks);
            for (seat, (before, tick)) in (0..board.seats_used()).zip(seats) {
                let now = page.ledger.seat_counts(&board, seat);
                let growth = growth(&now, before);
                *before = now;
                tick.held = u32::try_from(growth.inflight).unwrap_or(u32::MAX);
                tick.asked.update(growth.passed, growth.shed, part);
                own.keep(&growth);
                own.inflight = own.inflight.saturating_add(growth.inflight);
                for place in places(board.seat_scope(seat)) {
                    add(&mut self.scopes, place, &growth);
                    if let Some(held) = held.get_mut(place) {
                        *held = held.saturating_add(growth.inflight);
                    }
                }
            }
        }
    }

    /// Requests in flight in a scope of each tenant, in their order.
    pub(super) fn held_by_tenants(&self, place: usize) -> impl Iterator<Item = u64> {
        let held = self.held.iter();
        held.map(move |held| held.get(place).copied().unwrap_or(0))
    }

    /// Callers without a permit that a scope admitted in this tick.
    pub(super) fn one_shot(&self, place: usize) -> u64 {
        self.one_shots
            .get(place)
            .map_or(0, |(_before, growth)| *growth)
    }

    /// Requests that a scope would have refused in this tick if it did not only observe.
    pub(super) fn observed(&self, place: usize) -> u64 {
        let observed = self.observed.get(place);
        observed.map_or(0, |(_before, growth)| *growth)
    }

    /// What each seat of a tenant did in this tick; those never used did nothing.
    pub(super) fn seats_of(&self, tenant: usize) -> &[SeatTick] {
        self.ticks.get(tenant).map_or(&[], |ticks| ticks)
    }

    /// Growth of a tenant in the host in this tick, and what it has in flight.
    pub(super) fn of_tenant(&self, tenant: usize) -> ScopeCounts {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// Growth of a scope in this tick, and what it has in flight.
    pub(super) fn of(&self, place: usize) -> ScopeCounts {
        self.scopes.get(place).copied().unwrap_or_default()
    }
}

/// Follows a count that the ledgers of all tenants have for each scope.
fn follow(counts: &mut [(u64, u64)], pages: &[TenantPages], count: fn(&Ledger, u32) -> u64) {
    for (scope, (before, growth)) in (0..).zip(counts) {
        let counts = pages.iter().map(|page| count(&page.ledger, scope));
        let now = counts.fold(0, u64::wrapping_add);
        *growth = now.wrapping_sub(*before);
        *before = now;
    }
}

/// The scopes that a seat counts in: the host, which has them all, and its own.
fn places(own: u32) -> impl Iterator<Item = usize> {
    let places = [Some(HOST), Some(own).filter(|own| *own != HOST)];
    let places = places.into_iter().flatten();
    places.filter_map(|place| usize::try_from(place).ok())
}

fn add(scopes: &mut [ScopeCounts], place: usize, growth: &ScopeCounts) {
    if let Some(sum) = scopes.get_mut(place) {
        sum.keep(growth);
        sum.inflight = sum.inflight.saturating_add(growth.inflight);
    }
}

/// What a seat's counts grew by. One that is lower than before was cleared and began anew.
fn growth(now: &ScopeCounts, before: &ScopeCounts) -> ScopeCounts {
    let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
    ScopeCounts {
        inflight: now.inflight,
        passed: grown(now.passed, before.passed),
        success: grown(now.success, before.success),
        rt_ns: grown(now.rt_ns, before.rt_ns),
        refused: grown(now.refused, before.refused),
        shed: grown(now.shed, before.shed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_seat_began_anew_and_does_not_take_away_from_the_sum() {
        let before = ScopeCounts {
            inflight: 9,
            passed: 900,
            success: 100,
            rt_ns: 5_000,
            refused: 7,
            shed: 50,
        };
        let now = ScopeCounts {
            inflight: 3,
            passed: 4,
            success: 110,
            rt_ns: 9_000,
            refused: 9,
            shed: 0,
        };
        let expected = ScopeCounts {
            inflight: 3,
            passed: 4,
            success: 10,
            rt_ns: 4_000,
            refused: 2,
            shed: 0,
        };
        assert_eq!(growth(&now, &before), expected);
    }
}
