//! A tick allocates nothing.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::decision::{Class, ScopeState};
use tidegate_abi::signal::SignalId;
use tidegate_agent::control::{Driver, Plan};
use tidegate_agent::procfs::Roots;
use tidegate_agent::recording;
use tidegate_agent::signal::Sampler;
use tidegate_agent::tenant::HOST;
use tidegate_agent::tenant::client::{ServiceConnection, ServiceConnections, Who};
use tidegate_agent::tenant::peer_scope::PeerScope;
use tidegate_bench::SleepingProcesses;
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::os::listener::Listener;
use tidegate_tests::skip;

use crate::bench::{Bench, ORDERS, PID, TICK_NS, declared, tenant, write};

#[test]
fn a_tick_with_two_hundred_processes_in_twenty_groups_allocates_nothing() {
    let crowd = match SleepingProcesses::start("test") {
        Ok(crowd) => crowd,
        Err(error) => {
            skip::skip(&format!("needs root and a cpu controller: {error}"));
            return;
        }
    };
    let (tenant, ..) = tenant();
    let sampler = Sampler::new(Roots::default());
    let plan = Plan {
        declared: vec![declared("crowd", &crowd.pattern())],
        ..Plan::default()
    };
    let (mut driver, handle) = Driver::new(sampler, vec![tenant], plan);
    let mut now_ns = monotonic_ns();
    let mut tick = |ticks: u32| {
        for _tick in 0..ticks {
            now_ns += TICK_NS;
            driver.tick(now_ns, Duration::ZERO);
        }
    };
    // Two looks at each thread: the first opens its files, the second grows what keeps it.
    tick(100);
    let seen = allocation_counter::measure(|| tick(60));
    assert_eq!(seen.count_total, 0);
    let scopes = handle.snapshot().scopes;
    let of_crowd = scopes
        .iter()
        .filter(|scope| scope.name.starts_with("crowd/"));
    let threads: Vec<_> = of_crowd
        .map(|scope| scope.readings.value(SignalId::Threads))
        .collect();
    assert_eq!(threads, [Some(10.0); 20]);
}

/// A connected client in this scope, as the doors know it.
fn client(scope: u32) -> Arc<ServiceConnection> {
    let who = Who {
        pid: PID,
        uid: 0,
        name: String::new(),
        seat: None,
        no_seat: None,
    };
    let (_ticket, client) = ServiceConnections::default().add(who, PeerScope::found_at(scope));
    client
}

#[test]
fn a_scope_goes_through_overload_and_back_without_an_allocation_in_a_tick() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS)],
        ..Plan::default()
    });
    bench.add_group(ORDERS);
    let membership = format!("0::{ORDERS}\n");
    write(bench.dir.path(), &format!("proc/{PID}/cgroup"), &membership);
    let orders = bench.scope_of(PID);
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let cookie = Listener::of(&socket).expect("it listens").cookie();
    let service = client(orders);
    bench
        .handle
        .watch_listener(cookie, &service)
        .expect("there is room");
    let (tap, _queue) = recording::tap();
    bench.driver.record_to(tap);
    // Files are opened and searches made.
    bench.tick(40, 10);
    assert_eq!(bench.handle.events().count(), 0);
    // Two services of one scope, and one of another tenant, hold more than the entry limit.
    bench.hold(1, orders, 60);
    bench.hold(2, orders, 30);
    bench.seats.name_service(1, 7);
    bench.seats.name_service(2, 8);
    bench.hold_of_other(1, orders, 30);
    for class in [Class::Critical, Class::Normal, Class::Sheddable] {
        bench.ledger.count_offered(orders, class, true, Some(true));
    }
    let mut allocations = bench.allocations(2, 100);
    assert_eq!(bench.board.scope(orders).state, ScopeState::Overload);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Overload);
    assert!(bench.board.seat_share(1, false).is_some(), "it is divided");
    allocations += bench.allocations(20, 100);
    bench.seats.revoke(1);
    bench.seats.revoke(2);
    bench.other.1.revoke(1);
    allocations += bench.allocations(30, 10);
    assert_eq!(bench.board.scope(orders).state, ScopeState::Cold);
    let events = bench.handle.events().count();
    assert!(events >= 4, "there and back, twice: {events}");
    assert_eq!(allocations, 0);
    assert_eq!(bench.handle.snapshot().recording_lost, 0);
}
