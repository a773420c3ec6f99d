use std::sync::Arc;

use tidegate_abi::decision::{Cause, LossMode, Outcome};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{Process, PublishedScope, Slot};
use tidegate_segment::gate::{Gate, Step};

use super::*;
use crate::places::{Holder, PlaceBound, Places};
use crate::tenant::callers::Caller;
use crate::tenant::client::Who;
use crate::tenant::decide::Waits;
use crate::tenant::peer_scope::PeerScope;
use crate::tenant::{HOST, TenantSettings, permit};

/// A host in overload that lets four requests in at a time.
fn tenant() -> Arc<Tenant> {
    let settings = TenantSettings {
        geometry: Geometry::new(8, 4, 2, 2).unwrap(),
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let (tenant, mut tick) = Tenant::create(&settings).unwrap();
    let report = PublishedScope {
        word: ScopeWord {
            state: ScopeState::Overload,
            tight: 4,
            entry: 4,
            ..ScopeWord::OPEN
        },
        allowed_qps_milli: 0,
        cause: Cause::Cpu,
        since_ns: 0,
        inflight: 0,
    };
    assert!(tick.publish_scope(ScopeId::HOST.place, &report));
    Arc::new(tenant)
}

/// Asks as a user until it is refused; holds what it gets, and says how many and why there are no more.
async fn fill(tenant: &Tenant, users: &Arc<ScopeUsers>, (uid, slot): (u32, Slot)) -> (u32, u32) {
    let places = Places::new("permits", PlaceBound::parts(100, 1, 1));
    let caller = SeatedCaller::from(Caller {
        uid,
        ..Caller::HOST
    });
    let caller = caller.among(users);
    let mut many = 0;
    loop {
        let verdict = tenant.enter(&caller, slot, Request::default(), Waits::HELD);
        match verdict.await {
            GateVerdict::Admitted(pass) => {
                let place = places.take(Holder { uid, pid: 1 }).unwrap();
                let mut permits = tenant.timed_permits().lock();
                permits.hold(permit::draw().unwrap(), caller.permit(pass), place, 7);
                many += 1;
            }
            GateVerdict::Refused(refusal) => return (many, refusal.limit),
            GateVerdict::Stale => panic!("nothing was taken away"),
        }
    }
}

fn later(tenant: &Tenant) -> u64 {
    tenant.board().now_ns() + LONG_NS.0
}

fn inflight(tenant: &Tenant, slot: Slot) -> (u64, u64) {
    let of_scope = tenant.seats().scope_counts(ScopeId::HOST.place).inflight;
    (of_scope, tenant.seats().node_counts(slot).inflight)
}

#[tokio::test]
async fn field_b3_permits_held_for_long_leave_the_scope_and_keep_their_places_in_the_rules() {
    let (tenant, users) = (tenant(), Arc::default());
    let slot = tenant.directory().resolve("a").slot;
    assert_eq!(fill(&tenant, &users, (1, slot)).await, (4, 4));
    assert_eq!(tenant.set_aside(&users, later(&tenant)), 0, "it is alone");
    assert_eq!(fill(&tenant, &users, (2, slot)).await, (0, 4));
    let now_ns = tenant.board().now_ns();
    assert_eq!(tenant.set_aside(&users, now_ns), 0, "none is old");
    assert_eq!(tenant.set_aside(&users, later(&tenant)), 4);
    assert_eq!(inflight(&tenant, slot), (0, 4));
    assert_eq!(
        fill(&tenant, &users, (1, slot)).await,
        (0, 3),
        "it has its part"
    );
    assert_eq!(fill(&tenant, &users, (2, slot)).await, (2, 2));
    let ended = tenant.timed_permits().lock().take_ended(u64::MAX);
    for permit in ended {
        tenant.exit(permit, Outcome::Ok);
    }
    assert_eq!(inflight(&tenant, slot), (0, 0));
    // Those that were set aside count for their resource alone.
    assert_eq!(tenant.seats().node_counts(slot).success, 6);
    assert_eq!(tenant.seats().scope_counts(ScopeId::HOST.place).success, 2);
}

#[tokio::test]
async fn field_b3_a_service_that_maps_the_pages_is_another_user_that_asks() {
    let (tenant, users) = (tenant(), Arc::default());
    let slot = tenant.directory().resolve("a").slot;
    assert_eq!(fill(&tenant, &users, (1, slot)).await, (4, 4));
    let (uid, scope) = (3, HOST);
    let process = Process {
        pid: 1,
        start: 0,
        uid,
        scope,
    };
    let seat = tenant.seats().take(process).unwrap();
    let who = Who {
        pid: 1,
        uid,
        name: String::new(),
        seat: Some(seat),
        no_seat: None,
    };
    let (_ticket, _client) = tenant.clients().add(who, PeerScope::found_at(scope));
    assert_eq!(
        tenant.set_aside(&users, later(&tenant)),
        0,
        "it has not asked"
    );
    let (board, ledger) = (tenant.board(), tenant.ledger());
    let gate = Gate::new(*board, *ledger, seat.index, seat.generation);
    let step = gate.enter(board, lane::current(), slot, Request::default());
    assert!(
        matches!(step, Step::Done(GateVerdict::Refused(_))),
        "{step:?}"
    );
    assert_eq!(tenant.set_aside(&users, later(&tenant)), 4);
}
