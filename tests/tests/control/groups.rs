//! Groups become scopes, with the settings that are declared for them.

use std::fs;
use std::path::Path;

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::ScopeState;
use tidegate_abi::signal::SignalId;
use tidegate_agent::config::Config;
use tidegate_agent::control::{DeclaredGroup, Event, Plan};
use tidegate_agent::schema::source::Source;
use tidegate_agent::tenant::HOST;
use tidegate_agent::tenant::scope_resolver::ScopeResolver as _;

use crate::bench::{Bench, ORDERS, PID, POD, TICK_NS, declared, write};

#[test]
fn a_process_is_in_the_scope_of_its_group_and_one_without_in_the_host() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS)],
        ..Plan::default()
    });
    bench.add_group(ORDERS);
    write(
        bench.dir.path(),
        &format!("proc/{PID}/cgroup"),
        &format!("0::{ORDERS}\n"),
    );
    let orders = bench.scope_of(PID);
    assert_ne!(orders, HOST);
    assert_eq!(bench.scope_of(PID), orders);
    assert_eq!(bench.scope_of(PID + 1), HOST, "there is no such process");
    let snapshot = bench.handle.snapshot();
    let scope = snapshot.scopes.iter().find(|scope| scope.index == orders);
    let scope = scope.expect("the snapshot has it");
    assert_eq!(&*scope.name, "orders");
    assert_eq!(scope.cgroup.as_deref(), Some(Path::new(ORDERS)));
}

#[test]
fn field_o3_without_room_for_a_scope_a_process_is_in_that_of_the_nearest_group_above_it() {
    let mut bench = Bench::new(Plan::default());
    let mut scope_of = |pid, group: &str| {
        bench.add_group(group);
        let membership = format!("0::{group}\n");
        write(bench.dir.path(), &format!("proc/{pid}/cgroup"), &membership);
        bench.scope_of(pid)
    };
    let pod = scope_of(PID, POD);
    assert_ne!(pod, HOST);
    // Each takes a scope until there is none left.
    let full = (1..64).find(|number| scope_of(PID + number, &format!("/other{number}")) == HOST);
    assert!(full.is_some(), "there is room for fewer");
    assert_eq!(scope_of(PID + 100, ORDERS), pod);
}

#[test]
fn a_process_of_a_declared_group_has_the_declared_settings_from_its_first_tick_on() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS)],
        ..Plan::default()
    });
    // The search for declared groups has just been; the next one is a second away.
    bench.tick(2, 10);
    bench.add_group(ORDERS);
    let membership = format!("0::{ORDERS}\n");
    write(bench.dir.path(), &format!("proc/{PID}/cgroup"), &membership);
    let orders = bench.scope_of(PID);
    bench.tick(1, 10);
    let scopes = bench.handle.snapshot().scopes;
    let scope = scopes.iter().find(|scope| scope.index == orders);
    assert_eq!(scope.map(|scope| &*scope.name), Some("orders"));
}

#[test]
fn field_o3_a_scope_that_ended_is_known_as_ended_and_its_seats_are_the_hosts() {
    let mut bench = Bench::new(Plan::default());
    bench.add_group(ORDERS);
    let membership = format!("0::{ORDERS}\n");
    write(bench.dir.path(), &format!("proc/{PID}/cgroup"), &membership);
    let orders = bench.scope_id_of(PID);
    let finder = bench.handle.scope_finder();
    bench.seat(1, orders.place);
    bench.tick(1, 10);
    assert!(finder.is_current(orders));
    assert_eq!(bench.board.seat_scope(1), orders.place);
    let group = bench.dir.path().join(format!("cgroup{ORDERS}"));
    fs::remove_dir_all(group).expect("it is there");
    bench.tick(2, 10);
    assert!(!finder.is_current(orders));
    assert_eq!(bench.board.seat_scope(1), HOST);
    // The place has another group now, which is another scope.
    bench.add_group("/next");
    write(
        bench.dir.path(),
        &format!("proc/{PID}/cgroup"),
        "0::/next\n",
    );
    let next = bench.scope_id_of(PID);
    assert_eq!(next.place, orders.place);
    assert!(finder.is_current(next) && !finder.is_current(orders));
}

#[test]
fn a_declared_group_is_found_within_a_second_and_its_place_is_freed_when_it_goes() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS)],
        ..Plan::default()
    });
    bench.tick(2, 10);
    bench.add_group(ORDERS);
    bench.tick(11, 10);
    let found = |bench: &Bench| {
        let scopes = bench.handle.snapshot().scopes;
        scopes.into_iter().find(|scope| &*scope.name == "orders")
    };
    let index = |bench: &Bench| found(bench).map(|scope| scope.index);
    let orders = index(&bench).expect("it is watched");
    let began_ns = found(&bench).map(|scope| scope.since_ns);
    assert!(began_ns > Some(2 * TICK_NS), "since {began_ns:?}");
    assert_eq!(bench.board.scope(orders).state, ScopeState::Cold);
    fs::remove_dir_all(bench.dir.path().join("cgroup/system.slice")).expect("removed");
    bench.tick(1, 10);
    assert_eq!(index(&bench), None);
    assert_eq!(bench.board.scope(orders), ScopeWord::OPEN);
    bench.add_group(ORDERS);
    bench.tick(11, 10);
    assert_eq!(index(&bench), Some(orders), "the place is used again");
    let anew_ns = found(&bench).map(|scope| scope.since_ns);
    assert!(anew_ns > began_ns, "since {anew_ns:?}");
}

#[test]
fn declared_cpus_stand_for_the_measured_ones_until_the_plan_says_otherwise() {
    let plan = |cpus| Plan {
        declared: vec![DeclaredGroup {
            cpus,
            ..declared("orders", ORDERS)
        }],
        ..Plan::default()
    };
    let mut bench = Bench::new(plan(Some(1.5)));
    bench.add_group(ORDERS);
    bench.tick(2, 10);
    let cpus = |bench: &Bench| {
        let scopes = bench.handle.snapshot().scopes;
        let orders = scopes.iter().find(|scope| &*scope.name == "orders");
        orders.and_then(|scope| scope.readings.value(SignalId::EffectiveCpus))
    };
    assert_eq!(cpus(&bench), Some(1.5));
    bench.handle.set_plan(plan(None)).expect("there is room");
    bench.tick(1, 10);
    assert_eq!(cpus(&bench), Some(2.0), "those that are online");
}

#[test]
fn field_s4_a_group_that_uses_more_cpus_than_were_found_is_told_once() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS)],
        ..Plan::default()
    });
    bench.add_group(ORDERS);
    let directory = format!("cgroup{ORDERS}");
    let list = format!("{directory}/cpuset.cpus.effective");
    write(bench.dir.path(), &list, "0\n");
    for tick in 1..=25 {
        let used = format!("usage_usec {}\n", tick * 200_000);
        write(bench.dir.path(), &format!("{directory}/cpu.stat"), &used);
        bench.tick(1, 10);
    }
    let events: Vec<Event> = bench.handle.events().collect();
    let is_doubt = |event: &&Event| matches!(event, Event::CpusDoubted { .. });
    assert_eq!(events.iter().filter(is_doubt).count(), 1, "{events:?}");
}

#[test]
fn field_s12_a_declared_group_that_is_not_there_is_in_the_snapshot() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS), declared("none", "/no-*")],
        ..Plan::default()
    });
    bench.add_group(ORDERS);
    bench.tick(1, 10);
    let configured = bench.handle.snapshot().configured;
    let groups: Vec<_> = configured
        .iter()
        .map(|scope| (&*scope.name, scope.groups()))
        .collect();
    assert_eq!(groups, [("orders", 1), ("none", 0)]);
}

#[test]
fn field_l4_a_mark_of_a_group_goes_by_the_groups_own_use() {
    let config = "[cpu]\naction = \"reject\"\n[[scope]]\nname = \"orders\"\ncgroup = \"/system.slice/orders.service\"\n";
    let config = Config::parse(&Source::new("tidegate.toml", config)).expect("it is right");
    let mut bench = Bench::new(Plan::of(&config.config));
    bench.add_group(ORDERS);
    let mut usage_usec = 0;
    let mut states = |bench: &mut Bench, usec_a_tick: u64| {
        for _tick in 0..50 {
            usage_usec += usec_a_tick;
            bench.use_cpu(ORDERS, usage_usec);
            bench.tick(1, 100);
        }
        let scopes = bench.handle.snapshot().scopes;
        let orders = scopes.iter().find(|scope| &*scope.name == "orders");
        let orders = orders.expect("it is watched").index;
        [HOST, orders].map(|scope| bench.board.scope(scope).state)
    };
    let reject = ScopeState::Reject;
    assert_eq!(states(&mut bench, 0), [reject, ScopeState::Cold]);
    // Nine tenths of two CPUs.
    assert_eq!(states(&mut bench, 180_000), [reject, reject]);
}
