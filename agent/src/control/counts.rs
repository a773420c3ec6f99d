//! What the services did since the last tick, for each scope.
//!
//! Each seat is followed for itself and its growth goes to the scope it is in. So the growth of a
//! scope stays right when a seat is cleared, given to the next process or moved to another scope;
//! the difference of two sums over seats would not. What a process did between the last tick and
//! the clearing of its seat is not seen here: at most one tick of a process that has ended.

use tidegate_segment::ledger::ScopeCounts;

use super::driver::Pages;
use crate::tenant::HOST;

/// Follows the counts of every seat of all tenants.
#[derive(Debug)]
pub(super) struct Counts {
    /// What each seat had counted at the last tick, in the order of the tenants and the seats.
    seats: Vec<Box<[ScopeCounts]>>,
    /// Growth since the last tick and requests in flight, in the order of the scopes.
    scopes: Box<[ScopeCounts]>,
}

impl Counts {
    /// Begins with what is counted now; `scopes` is one more than the highest place.
    pub(super) fn new(pages: &[Pages], scopes: usize) -> Self {
        let seats = pages.iter().map(|page| {
            let board = page.writer.board();
            let seats = 0..page.ledger.geometry().seats();
            seats
                .map(|seat| page.ledger.seat_counts(&board, seat))
                .collect()
        });
        Self {
            seats: seats.collect(),
            scopes: vec![ScopeCounts::default(); scopes].into(),
        }
    }

    /// Takes a tick's counts: one pass over the seats that were ever used.
    pub(super) fn take(&mut self, pages: &[Pages]) {
        self.scopes.fill(ScopeCounts::default());
        for (page, seats) in pages.iter().zip(&mut self.seats) {
            let board = page.writer.board();
            for (seat, before) in (0..board.seats_used()).zip(seats) {
                let now = page.ledger.seat_counts(&board, seat);
                let growth = growth(&now, before);
                *before = now;
                add(&mut self.scopes, board.seat_scope(seat), &growth);
            }
        }
    }

    /// Growth of a scope in this tick, and what it has in flight.
    pub(super) fn of(&self, place: usize) -> ScopeCounts {
        self.scopes.get(place).copied().unwrap_or_default()
    }
}

/// Adds a seat's growth to its own scope and to the host, which has them all.
fn add(scopes: &mut [ScopeCounts], own: u32, growth: &ScopeCounts) {
    let places = [Some(HOST), Some(own).filter(|own| *own != HOST)];
    for place in places.into_iter().flatten() {
        let place = usize::try_from(place).ok();
        if let Some(sum) = place.and_then(|place| scopes.get_mut(place)) {
            sum.keep(growth);
            sum.inflight = sum.inflight.saturating_add(growth.inflight);
        }
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
