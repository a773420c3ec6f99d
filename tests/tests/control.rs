//! The control loop on trees of plain files and on pages in private memory, with a scripted clock;
//! and once for real.

#![cfg(test)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, Class, LossMode, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_abi::signal::SignalId;
use tidegate_agent::bench::Crowd;
use tidegate_agent::control::{Declared, Driver, Event, Handle, Pages, Plan, start};
use tidegate_agent::recording;
use tidegate_agent::signal::{PressureTriggers, Roots, Sampler};
use tidegate_agent::tenant::HOST;
use tidegate_agent::tenant::scope_resolver::ScopeResolver as _;
use tidegate_segment::board::{self, AgentLife, Board, Process, SeatWriter, Settings};
use tidegate_segment::clock::monotonic_ns;
use tidegate_segment::gate::{Gate, Pass, Request, Step, Verdict};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;
use tidegate_tests::skip;

const TICK_NS: u64 = 100_000_000;
/// More than any kernel gives out, so that the machine's own processes do not answer.
const PID: u32 = 5_000_000;
const ORDERS: &str = "/system.slice/orders.service";

/// A host with two CPUs and a driver that watches it.
struct Bench {
    dir: tempfile::TempDir,
    driver: Box<Driver>,
    handle: Handle,
    board: Board,
    seats: SeatWriter,
    ledger: Ledger,
    /// The pages of a second tenant.
    other: (Board, SeatWriter, Ledger),
    now_ns: u64,
    busy: u64,
    idle: u64,
}

fn tenant() -> (Pages, Board, SeatWriter, Ledger) {
    let geometry = Geometry::new(4, 4, 2, 32).expect("the sizes are allowed");
    let settings = Settings {
        generation: 1,
        time_to_live_ns: 10 * TICK_NS,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let page = Page::private(geometry.board().words);
    let (board, writers) = board::create(page, geometry, settings).expect("the page fits");
    let page = Page::private(geometry.ledger().words);
    let ledger = Ledger::create(page, geometry).expect("the page fits");
    let tenant = Pages {
        writer: writers.tick,
        ledger,
    };
    (tenant, board, writers.seats, ledger)
}

impl Bench {
    fn new(plan: Plan) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let roots = Roots {
            proc: dir.path().join("proc"),
            cgroup: dir.path().join("cgroup"),
        };
        write(dir.path(), "cgroup/cgroup.controllers", "cpu\n");
        write(dir.path(), "proc/loadavg", "0.10 0.10 0.10 1/100 1\n");
        let (first, board, seats, ledger) = tenant();
        let (second, other_board, other_seats, other_ledger) = tenant();
        let tenants = vec![first, second];
        let (driver, handle) = Driver::new(Sampler::new(roots), tenants, plan);
        Self {
            dir,
            driver,
            handle,
            board,
            seats,
            ledger,
            other: (other_board, other_seats, other_ledger),
            now_ns: 0,
            busy: 0,
            idle: 0,
        }
    }

    /// Ticks with the host's CPUs busy to this percentage.
    fn tick(&mut self, ticks: u32, busy_percent: u64) {
        for _tick in 0..ticks {
            self.now_ns += TICK_NS;
            self.busy += busy_percent;
            self.idle += 100 - busy_percent;
            let (busy, idle) = (self.busy, self.idle);
            let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0\ncpu1 0\n");
            write(self.dir.path(), "proc/stat", &stat);
            self.driver.tick(self.now_ns, Duration::from_micros(50));
        }
    }

    fn add_group(&self, path: &str) {
        write(self.dir.path(), &format!("cgroup{path}/cpu.max"), "max\n");
    }

    /// Asks for the scope of a process, as a door does, and ticks until there is an answer.
    fn scope_of(&mut self, pid: u32) -> u32 {
        let finder = self.handle.scope_finder();
        let asking = std::thread::spawn(move || finder.scope_of(pid));
        while !asking.is_finished() {
            self.tick(1, 10);
        }
        asking.join().expect("it was answered")
    }

    /// Holds requests of a service in this scope.
    fn hold(&mut self, seat: u32, scope: u32, requests: u32) -> Vec<Pass> {
        let pages = (self.board, &mut self.seats, self.ledger);
        hold(pages, self.now_ns, (seat, scope), requests)
    }

    /// The same of a service of the other tenant.
    fn hold_of_other(&mut self, seat: u32, scope: u32, requests: u32) -> Vec<Pass> {
        let (board, seats, ledger) = &mut self.other;
        let pages = (*board, seats, *ledger);
        hold(pages, self.now_ns, (seat, scope), requests)
    }
}

/// Requests that a service with a seat of its own holds, of so many that it asks for.
fn hold(
    (board, seats, ledger): (Board, &mut SeatWriter, Ledger),
    now_ns: u64,
    (seat, scope): (u32, u32),
    requests: u32,
) -> Vec<Pass> {
    let process = Process {
        pid: 100,
        start: 1,
        uid: 0,
        scope,
    };
    let generation = seats.seat(seat, process).expect("the seat is free");
    let gate = Gate::new(board, ledger, seat, generation);
    let slot = board::Slot {
        index: 0,
        generation: 0,
    };
    let clock = Stopped(now_ns);
    let entered = (0..requests).filter_map(|_request| {
        match gate.enter(&clock, Lane::numbered(1), slot, Request::default()) {
            Step::Done(Verdict::Admitted(pass)) => Some(pass),
            Step::Done(Verdict::Refused(_) | Verdict::Stale) | Step::Wait(_) => None,
        }
    });
    entered.collect()
}

/// Time that stands still.
struct Stopped(u64);

impl tidegate_segment::clock::Clock for Stopped {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

fn write(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    let parent = path.parent().expect("it is below the directory");
    fs::create_dir_all(parent).expect("the directory can be made");
    fs::write(path, content).expect("the file can be written");
}

fn declared(name: &str, cgroup: &str) -> Declared {
    Declared {
        name: name.into(),
        cgroup: cgroup.into(),
        cpus: None,
        settings: Arc::default(),
    }
}

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
            Event::State { .. } | Event::Ineffective { .. } => None,
        })
        .collect();
    assert_eq!(states, [ScopeState::Overload, ScopeState::Cold]);
}

#[test]
fn requests_in_flight_on_a_full_cpu_are_overload_at_the_next_tick() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(2, 10);
    let held = bench.hold(1, HOST, 100);
    assert_eq!(held.len(), 100);
    bench.tick(1, 100);
    let info = bench.board.scope_info(HOST).expect("the host");
    assert_eq!(info.word.state, ScopeState::Overload);
    assert_eq!((info.word.tight, info.inflight), (32, 100));
    bench.seats.revoke(1);
    bench.tick(1, 10);
    let info = bench.board.scope_info(HOST).expect("the host");
    assert_eq!(info.inflight, 0, "a dead process holds nothing");
}

#[test]
fn a_limit_of_the_host_counts_what_all_tenants_hold_and_leaves_each_its_part() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(2, 10);
    assert_eq!(bench.hold(1, HOST, 100).len(), 100);
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
    bench.tick(1, 50);
    assert_eq!(bench.board.samples(), (Some(0.1), None), "a rate needs two");
    bench.tick(1, 50);
    assert_eq!(bench.board.samples(), (Some(0.1), Some(0.5)));
    fs::remove_file(bench.dir.path().join("proc/loadavg")).expect("removed");
    bench.tick(1, 50);
    assert_eq!(bench.board.samples(), (None, Some(0.5)));
}

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
        declared: vec![Declared {
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
fn other_settings_are_in_force_at_the_next_tick_and_keep_the_state() {
    let mut bench = Bench::new(Plan::default());
    bench.tick(30, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Overload);
    let mut host = tidegate_limits::law::Settings::default();
    host.marks.action = tidegate_limits::law::Action::Reject;
    let plan = Plan {
        host: Arc::new(host),
        ..Plan::default()
    };
    bench.handle.set_plan(plan).expect("there is room");
    bench.tick(1, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Reject);
}

#[test]
fn a_tick_with_two_hundred_processes_in_twenty_groups_allocates_nothing() {
    let crowd = match Crowd::start("test") {
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
    tick(60);
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

#[test]
fn the_sampler_thread_ticks_on_time_and_stops_when_told() {
    let (tenant, board, ..) = tenant();
    let sampler = Sampler::new(Roots::default());
    let (driver, handle) = Driver::new(sampler, vec![tenant], Plan::default());
    let (told, lates) = std::sync::mpsc::sync_channel(64);
    let started = Instant::now();
    let on_late = move |late| {
        // The test takes the first five and leaves.
        let _full: Result<(), _> = told.try_send(late);
    };
    let triggers = PressureTriggers::arm(false, &Roots::default());
    let tick = Duration::from_millis(20);
    let ticking = start(driver, triggers, tick, on_late).expect("it starts");
    for _tick in 0..5 {
        lates
            .recv_timeout(Duration::from_secs(10))
            .expect("a tick within the deadline");
    }
    assert!(started.elapsed() >= Duration::from_millis(100));
    ticking.stop();
    assert!(board.tick() >= 5);
    assert_eq!(board.agent_life(monotonic_ns()), AgentLife::Present);
    let snapshot = handle.snapshot();
    assert!(snapshot.ticks >= 5);
    assert!(snapshot.late_p99 >= snapshot.late || snapshot.late > Duration::ZERO);
}

/// Two services of three processes in the host: one that holds 90 requests and one that holds 4.
fn overloaded() -> Bench {
    let mut bench = Bench::new(Plan::default());
    bench.tick(1, 10);
    for (seat, service, requests) in [(1, 7, 60), (2, 7, 30), (3, 8, 4)] {
        bench.hold(seat, HOST, requests);
        bench.seats.name_service(seat, service);
    }
    bench.tick(2, 100);
    assert_eq!(bench.board.scope(HOST).state, ScopeState::Overload);
    bench
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

#[test]
fn a_tick_in_overload_with_shares_and_a_recording_allocates_nothing() {
    let mut bench = overloaded();
    let (tap, _queue) = recording::tap();
    bench.driver.record_to(tap);
    bench.tick(1, 100);
    bench
        .ledger
        .count_offered(HOST, Class::Normal, true, Some(true));
    let now_ns = bench.now_ns + TICK_NS;
    let seen = allocation_counter::measure(|| {
        bench.driver.tick(now_ns, Duration::ZERO);
    });
    assert_eq!(seen.count_total, 0);
    assert_eq!(bench.handle.snapshot().recording_lost, 0);
}
