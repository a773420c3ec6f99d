use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, LossMode, Outcome, Reason, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{Process, PublishedScope, Slot, TickWriter};
use tidegate_segment::gate::{GateVerdict, Request};

use super::*;
use crate::tenant::decide::Waits;
use crate::tenant::{OPEN_SCOPE, TakenUp, TenantSettings};

const GROUP: ScopeId = ScopeId::first_at(1);

/// Pages for so many seats with a group's scope, and the role of the tick.
fn pages(seats: u32) -> (Arc<Tenant>, TickWriter) {
    let settings = TenantSettings {
        geometry: Geometry::new(8, seats, 2, 3).unwrap(),
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let TakenUp {
        tenant, mut tick, ..
    } = *TakenUp::new(&settings).unwrap();
    assert!(tick.publish_scope(GROUP.place, &OPEN_SCOPE));
    (tenant, tick)
}

fn caller(scope: ScopeId, service: u64) -> Caller {
    Caller {
        service,
        ..Caller::in_scope(scope)
    }
}

/// In overload with a tight limit, and an allowed QPS that admits nobody.
fn overload(tight: u32) -> PublishedScope {
    PublishedScope {
        word: ScopeWord {
            state: ScopeState::Overload,
            tight,
            entry: tight + 32,
            ..ScopeWord::OPEN
        },
        allowed_qps_milli: 0,
        cause: Cause::Cpu,
        since_ns: 0,
        inflight: 0,
    }
}

async fn ask(tenant: &Tenant, slot: Slot, caller: &SeatedCaller) -> Result<ProxyPermit, Reason> {
    let asked = tenant.enter(caller, slot, Request::default(), Waits::HELD);
    match asked.await {
        GateVerdict::Admitted(pass) => Ok(caller.permit(pass)),
        GateVerdict::Refused(refusal) => Err(refusal.reason),
        GateVerdict::Stale => panic!("nothing was taken away"),
    }
}

fn inflight(tenant: &Tenant) -> [u64; 2] {
    let of = |scope| tenant.seats().scope_counts(scope).inflight;
    [of(HOST), of(GROUP.place)]
}

#[tokio::test]
async fn field_o3_a_permit_over_a_socket_counts_in_its_holders_scope_and_is_held_to_its_limit() {
    let (tenant, mut tick) = pages(8);
    let slot = tenant.directory().resolve("a").slot;
    tick.publish_scope(GROUP.place, &overload(2));
    let inside = tenant.seat_caller(caller(GROUP, 7));
    let outside = tenant.seat_caller(Caller::HOST);
    let first = ask(&tenant, slot, &inside).await.unwrap();
    let _second = ask(&tenant, slot, &inside).await.unwrap();
    assert_eq!(inflight(&tenant), [2, 2]);
    let refused = ask(&tenant, slot, &inside).await;
    assert_eq!(refused.unwrap_err(), Reason::Overload);
    let _outside = ask(&tenant, slot, &outside).await.unwrap();
    assert_eq!(inflight(&tenant), [3, 2]);
    tenant.exit(first, Outcome::Ok);
    assert_eq!(inflight(&tenant), [2, 1]);
    let counts = tenant.seats().scope_counts(GROUP.place);
    assert_eq!((counts.passed, counts.success, counts.shed), (2, 1, 1));
    ask(&tenant, slot, &inside).await.unwrap();
}

#[tokio::test]
async fn field_o3_one_at_a_time_is_never_refused_for_what_was_given_back() {
    let (tenant, mut tick) = pages(8);
    let slot = tenant.directory().resolve("a").slot;
    tick.publish_scope(GROUP.place, &overload(1));
    for _request in 0..1000 {
        let inside = tenant.seat_caller(caller(GROUP, 7));
        let permit = ask(&tenant, slot, &inside).await.unwrap();
        tenant.exit(permit, Outcome::Ok);
    }
    assert_eq!(inflight(&tenant), [0, 0]);
    assert_eq!(tenant.seats().scope_counts(GROUP.place).success, 1000);
}

#[tokio::test]
async fn field_o3_services_of_a_scope_have_seats_of_their_own_while_there_are_some() {
    let (tenant, _tick) = pages(16);
    let seat = |service| {
        tenant
            .seat_caller(caller(GROUP, service))
            .seat
            .unwrap()
            .seat
    };
    let (web, batch) = (seat(1), seat(2));
    assert_ne!(web, batch);
    assert_eq!(seat(1), web);
    let board = tenant.board();
    assert_eq!(board.seat_service(web.index), 1);
    assert_eq!(board.seat_scope(web.index), GROUP.place);
    // Two of four are for the first services of other scopes.
    assert_eq!(seat(3), web);
    let other = ScopeId::first_at(2);
    assert!(tenant.seat_caller(caller(other, 1)).seat.is_some());
}

#[tokio::test]
async fn field_o3_without_a_seat_for_the_scope_its_allowed_qps_stands_for_its_limit() {
    let (tenant, mut tick) = pages(3);
    let slot = tenant.directory().resolve("a").slot;
    tick.publish_scope(GROUP.place, &overload(2));
    let inside = tenant.seat_caller(caller(GROUP, 7));
    assert!(inside.seat.is_none());
    let refused = ask(&tenant, slot, &inside).await;
    assert_eq!(refused.unwrap_err(), Reason::AllowedQps);
}

#[tokio::test]
async fn field_o3_a_seat_is_given_up_when_nobody_asks_and_nothing_is_held() {
    let (tenant, _tick) = pages(8);
    let slot = tenant.directory().resolve("a").slot;
    let inside = tenant.seat_caller(caller(GROUP, 7));
    let index = inside.seat.as_ref().unwrap().seat.index;
    let permit = ask(&tenant, slot, &inside).await.unwrap();
    drop(inside);
    let later = tenant.board().now_ns() + 2 * KEPT_NS;
    tenant.tend_proxy_seats(later, |_scope| true);
    assert!(tenant.board().seat(index).live, "a permit is held in it");
    tenant.exit(permit, Outcome::Ok);
    tenant.tend_proxy_seats(tenant.board().now_ns(), |_scope| true);
    assert!(tenant.board().seat(index).live, "somebody asked just now");
    tenant.tend_proxy_seats(later, |_scope| true);
    assert!(!tenant.board().seat(index).live);
    let counts = tenant.seats().scope_counts(GROUP.place);
    assert_eq!((counts.inflight, counts.success), (0, 1), "counts stay");
}

#[tokio::test]
async fn field_o3_what_is_held_in_a_scope_that_ends_counts_in_the_host_and_not_in_the_next_group() {
    let (tenant, mut tick) = pages(16);
    let slot = tenant.directory().resolve("a").slot;
    let inside = tenant.seat_caller(caller(GROUP, 7));
    let held = ask(&tenant, slot, &inside).await.unwrap();
    drop(inside);
    tick.leave_scope(GROUP.place);
    assert_eq!(inflight(&tenant), [1, 0]);
    let next = ScopeId {
        generation: 1,
        ..GROUP
    };
    let of_next = tenant.seat_caller(caller(next, 7));
    let _new = ask(&tenant, slot, &of_next).await.unwrap();
    assert_eq!(inflight(&tenant), [2, 1]);
    tenant.exit(held, Outcome::Ok);
    assert_eq!(inflight(&tenant), [1, 1]);
    // The old seat is not kept for anybody.
    let live = || {
        (0..16)
            .filter(|seat| tenant.board().seat(*seat).live)
            .count()
    };
    assert_eq!(live(), 3);
    tenant.tend_proxy_seats(tenant.board().now_ns(), |scope| scope != GROUP);
    assert_eq!(live(), 2);
}

#[test]
fn field_o3_some_seats_are_kept_for_callers_who_find_none_of_their_own() {
    let (tenant, _tick) = pages(32);
    let process = |start| Process {
        pid: 77,
        start,
        uid: 0,
        scope: HOST,
    };
    let taken = (0..32).filter(|start| tenant.seats().take(process(*start)).is_ok());
    assert_eq!(taken.count(), 32 - 1 - 2);
    assert!(tenant.seat_caller(caller(GROUP, 7)).seat.is_some());
}
