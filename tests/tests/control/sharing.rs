//! Tenants and services share the limit of a scope.

use tidegate_abi::decision::ScopeState;
use tidegate_agent::control::Plan;
use tidegate_agent::tenant::HOST;
use tidegate_segment::board::Board;

use crate::bench::{Bench, overloaded};

#[test]
fn a_limit_of_the_host_counts_what_all_tenants_hold_and_leaves_each_its_part() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(2, 10);
    assert_eq!(bench.hold(1, HOST, 64).len(), 64);
    bench.tick(2, 100);
    let limit = |board: &Board| board.scope(HOST);
    assert_eq!(limit(&bench.board).state, ScopeState::Overload);
    assert_eq!(limit(&bench.other.0), limit(&bench.board));
    // Cold on two CPUs: 32 in flight. The first holds more than that, which leaves the second its half.
    assert_eq!(
        (bench.board.others(HOST), bench.other.0.others(HOST)),
        (0, 16)
    );
    assert_eq!(bench.hold_of_other(1, HOST, 100).len(), 16);
    bench.tick(1, 100);
    assert_eq!(bench.board.others(HOST), 16);
    // One that holds less than the rest of the limit counts for what it holds.
    bench.seats.revoke(1);
    assert_eq!(bench.hold(2, HOST, 3).len(), 3);
    bench.tick(1, 100);
    assert_eq!(
        (bench.board.others(HOST), bench.other.0.others(HOST)),
        (16, 3)
    );
}

#[test]
fn services_of_a_scope_in_overload_have_shares_and_processes_of_one_have_one() {
    let mut bench = overloaded();
    let share = |bench: &Bench, seat| bench.board.seat_share(seat, true);
    let greedy = share(&bench, 1).expect("it has a share");
    assert_eq!(share(&bench, 2), Some(greedy));
    // Cold on two CPUs: 32 in flight, and the modest one needs 4 · 1.25 + 1 of them.
    assert_eq!((greedy.guaranteed, greedy.limit), (0, 26));
    let modest = share(&bench, 3).expect("it has a share");
    assert!(modest.guaranteed > modest.limit, "{modest:?}");
    bench.seats.revoke(1);
    bench.seats.revoke(2);
    bench.tick(30, 10);
    assert_eq!(share(&bench, 3), None, "no overload, no shares");
}
