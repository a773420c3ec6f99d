//! What a tick tells of the host.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_abi::signal::SignalId;
use tidegate_agent::control::{Event, Plan};
use tidegate_agent::tenant::HOST;
use tidegate_segment::board::AgentLife;

use crate::bench::{Bench, LIAR, ORDERS, POD, declared};

#[test]
fn each_tick_beats_and_publishes_the_host() {
    let mut bench = Bench::new(Plan::default());
    assert_eq!(bench.board.scope(HOST), ScopeWord::OPEN);
    bench.tick(3, 10);
    assert_eq!(bench.board.tick(), 3);
    assert_eq!(bench.board.agent_life(bench.now_ns), AgentLife::Present);
    let host = bench.board.scope(HOST);
    assert_eq!(host.state, ScopeState::Cold);
    let snapshot = bench.handle.snapshot();
    assert_eq!((snapshot.ticks, snapshot.now_ns), (3, bench.now_ns));
    assert_eq!(snapshot.late_p99, Duration::from_micros(50));
    let host = snapshot.scopes.first().expect("the host");
    assert_eq!(host.readings.value(SignalId::TickLate), Some(50e-6));
    assert_eq!((&*host.name, &host.cgroup), ("host", &None));
    assert_eq!(host.published.entry, 64, "32 for each of two CPUs");
}

#[test]
fn two_seconds_of_full_cpu_are_overload_and_five_healthy_samples_end_it() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(5, 10);
    assert_eq!(bench.handle.events().count(), 0);
    bench.tick(19, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Cold);
    bench.tick(1, 100);
    let info = bench.board.scope_info(HOST).expect("the host");
    assert_eq!(info.word.state, ScopeState::Overload);
    assert_eq!((info.cause, info.since_ns), (Cause::Cpu, bench.now_ns));
    bench.tick(4, 20);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Overload);
    bench.tick(1, 20);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Cold);
    let states: Vec<_> = bench
        .handle
        .events()
        .filter_map(|event| match event {
            Event::State { scope, to, .. } if &*scope == "host" => Some(to),
            Event::State { .. }
            | Event::Ineffective { .. }
            | Event::WithoutGroup { .. }
            | Event::GroupFound { .. }
            | Event::GroupUnseen { .. }
            | Event::CpusDoubted { .. }
            | Event::DeclaredCpus { .. } => None,
        })
        .collect();
    assert_eq!(states, [ScopeState::Overload, ScopeState::Cold]);
}

#[test]
fn field_l14_a_cold_scope_refuses_a_surge_and_is_in_overload_at_the_next_tick() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(2, 10);
    // Cold on two CPUs: 128 more within a tick of 100 ms are a surge, and so are 64 in a moment.
    let held = bench.hold(1, HOST, 100);
    assert_eq!(held.len(), 65);
    bench.tick(1, 100);
    let info = bench.board.scope_info(HOST).expect("the host");
    assert_eq!(info.word.state, ScopeState::Overload);
    assert_eq!((info.word.tight, info.inflight), (32, 65));
    bench.seats.revoke(1);
    bench.tick(1, 10);
    let info = bench.board.scope_info(HOST).expect("the host");
    assert_eq!(info.inflight, 0, "a dead process holds nothing");
}

#[test]
fn a_seat_that_is_cleared_takes_nothing_from_what_was_counted() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(1, 10);
    let passed = |bench: &Bench| {
        let snapshot = bench.handle.snapshot();
        snapshot.scopes.first().map(|host| host.counts.passed)
    };
    bench.hold(1, HOST, 20);
    bench.tick(1, 10);
    assert_eq!(passed(&bench), Some(20));
    bench.seats.revoke(1);
    bench.ledger.clear_seat(1, 1);
    bench.hold(2, HOST, 3);
    bench.tick(1, 10);
    assert_eq!(passed(&bench), Some(23));
    bench.hold(1, HOST, 30);
    bench.tick(1, 10);
    assert_eq!(passed(&bench), Some(53), "the next holder begins anew");
}

#[test]
fn system_rules_find_load_and_cpu_on_the_board_or_that_they_are_not_measured() {
    let mut bench = Bench::new(Plan::default());
    assert_eq!(bench.board.samples(), (None, None));
    bench.tick(9, 50);
    assert_eq!(bench.board.samples(), (Some(0.1), None), "no second yet");
    // The first tick has no length.
    bench.tick(2, 50);
    assert_eq!(bench.board.samples(), (Some(0.1), Some(0.5)));
    fs::remove_file(bench.dir.path().join("proc/loadavg")).expect("removed");
    bench.tick(1, 50);
    assert_eq!(bench.board.samples(), (None, Some(0.5)));
}

#[test]
fn field_l6_a_system_rule_finds_the_mean_of_a_second_and_not_one_tick() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(11, 50);
    for _half_second in 0..20 {
        for busy in [100, 100, 10, 10, 10] {
            bench.tick(1, busy);
            let (_load, cpu) = bench.board.samples();
            assert!(cpu < Some(0.6), "{cpu:?} would be over a mark of 0.85");
        }
    }
    let (_load, cpu) = bench.board.samples();
    assert!(cpu > Some(0.4), "{cpu:?}");
}

#[test]
fn other_settings_are_in_force_at_the_next_tick_and_keep_the_state() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(30, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Overload);
    let mut host = tidegate_limits::law::LawSettings::default();
    host.marks.action = tidegate_limits::law::ThresholdAction::Reject;
    let plan = Plan {
        host: Arc::new(host),
        ..Plan::default()
    };
    bench.handle.set_plan(plan).expect("there is room");
    bench.tick(1, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Reject);
}

#[test]
fn the_hosts_capacity_is_that_of_its_services_and_not_of_everybody() {
    let plan = || Plan {
        declared: vec![declared("orders", ORDERS), declared("pod", POD)],
        ..Plan::default()
    };
    // Services in a group and in one below it use a fifth of two CPUs for 100 requests a second, and the host half:
    // what else it runs is a neighbour. With one out of sight nobody knows.
    for (out_of_sight, capacity_qps) in [(false, 500.0), (true, 200.0)] {
        let mut bench = Bench::new(plan());
        let mut usage_usec = 0;
        let mut tick = |bench: &mut Bench, ticks: u32| {
            for _tick in 0..ticks {
                usage_usec += 40_000;
                bench.use_cpu(POD, usage_usec);
                bench.use_cpu(ORDERS, usage_usec / 2);
                bench.tick(1, 50);
            }
        };
        for group in [POD, ORDERS] {
            bench.add_group(group);
        }
        tick(&mut bench, 12);
        let place = |bench: &Bench, name: &str| {
            let scopes = bench.handle.snapshot().scopes;
            let scope = scopes.into_iter().find(|scope| &*scope.name == name);
            scope.expect("it is watched").index
        };
        bench.seat(1, place(&bench, "orders"));
        bench.seat(2, place(&bench, "pod"));
        if out_of_sight {
            bench.seat(3, HOST);
        }
        for _tick in 0..100 {
            bench.work(1, 10);
            tick(&mut bench, 1);
        }
        let host = bench.handle.snapshot().scopes.swap_remove(0).published;
        let told = host.capacity_qps.unwrap_or_default();
        assert!((told - capacity_qps).abs() < 1.0, "{host:?}");
    }
}

#[test]
fn field_l11_a_tenant_that_forges_successes_lifts_no_limit_of_another() {
    let mut bench = Bench::new(Plan {
        declared: vec![declared("orders", ORDERS), declared("liar", LIAR)],
        ..Plan::default()
    });
    for group in [ORDERS, LIAR] {
        bench.add_group(group);
    }
    let mut usage_usec = 0;
    let mut tick = |bench: &mut Bench, ticks: u32| {
        for _tick in 0..ticks {
            usage_usec += 40_000;
            bench.use_cpu(ORDERS, usage_usec);
            bench.use_cpu(LIAR, usage_usec / 100);
            bench.tick(1, 30);
        }
    };
    tick(&mut bench, 12);
    let place = |bench: &Bench, name: &str| {
        let scopes = bench.handle.snapshot().scopes;
        let scope = scopes.into_iter().find(|scope| &*scope.name == name);
        scope.expect("it is watched").index
    };
    bench.seat(1, place(&bench, "orders"));
    let liar = place(&bench, "liar");
    bench.hold_of_other(1, liar, 0);
    for _tick in 0..60 {
        bench.work(1, 10);
        bench.work_of_other(1, 2_000);
        tick(&mut bench, 1);
    }
    let all = bench.handle.snapshot().scopes.swap_remove(0).published;
    assert!(all.entry > 5_000, "the law of all believes it: {all:?}");
    // What it did with a fifth of two CPUs, some of which it used before it did anything: 400 a second, for 200 ms.
    let entry = bench.board.scope(HOST).entry;
    assert!((70..=110).contains(&entry), "{entry}");
}
