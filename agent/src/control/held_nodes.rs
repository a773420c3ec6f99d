//! What the resources that bulkheads hold have in flight: a scope has them beside its limits.

use super::pages::TenantPages;
use super::request::HeldResource;
use crate::tenant::HOST;

/// What the resources that bulkheads hold have in flight in a scope, of one tenant or of all; the host has all.
pub(super) fn capped(
    pages: &[TenantPages],
    held: &[HeldResource],
    scope: u32,
    tenant: Option<usize>,
) -> u32 {
    let resources = held.iter();
    let resources = resources.filter(|one| tenant.is_none_or(|tenant| tenant == one.tenant));
    let in_flight = resources.map(|one| {
        let Some(page) = pages.get(one.tenant) else {
            return 0;
        };
        let board = page.writer.board();
        let seats = 0..board.seats_used();
        let seats = seats.filter(|seat| scope == HOST || board.seat_scope(*seat) == scope);
        let of_seat = |seat| match board.seat(seat) {
            word if word.live => page.ledger.seat_node_inflight(seat, word, one.slot),
            _ => 0,
        };
        seats.map(of_seat).fold(0, u32::saturating_add)
    });
    in_flight.fold(0, u32::saturating_add)
}
