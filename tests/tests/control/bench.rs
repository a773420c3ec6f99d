//! A host of plain files, pages in private memory and a scripted clock.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::decision::{LossMode, Outcome, ScopeState};
use tidegate_abi::geometry::Geometry;
use tidegate_agent::control::{DeclaredGroup, Driver, Handle, Plan, TenantPages};
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::Sampler;
use tidegate_agent::tenant::HOST;
use tidegate_agent::tenant::scope_resolver::{ScopeId, ScopeResolver as _};
use tidegate_segment::board::{self, Board, BoardSettings, Process, SeatWriter};
use tidegate_segment::gate::{Gate, GateVerdict, Pass, Request, Step};
use tidegate_segment::lane::Lane;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::page::Page;

pub(crate) const TICK_NS: u64 = 100_000_000;
/// More than any kernel gives out, so that the machine's own processes do not answer.
pub(crate) const PID: u32 = 5_000_000;
pub(crate) const ORDERS: &str = "/system.slice/orders.service";
/// A group of the other tenant.
pub(crate) const LIAR: &str = "/system.slice/liar.service";
/// The group above it.
pub(crate) const POD: &str = "/system.slice";

/// How late each tick is.
const LATE: Duration = Duration::from_micros(50);

/// A host with two CPUs and a driver that watches it.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) driver: Box<Driver>,
    pub(crate) handle: Handle,
    pub(crate) board: Board,
    pub(crate) seats: SeatWriter,
    pub(crate) ledger: Ledger,
    /// The pages of a second tenant.
    pub(crate) other: (Board, SeatWriter, Ledger),
    pub(crate) now_ns: u64,
    busy: u64,
    idle: u64,
}

pub(crate) fn tenant() -> (TenantPages, Board, SeatWriter, Ledger) {
    let geometry = Geometry::new(4, 4, 2, 32).expect("the sizes are allowed");
    let settings = BoardSettings {
        generation: 1,
        time_to_live_ns: 10 * TICK_NS,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let page = Page::private(geometry.board().words);
    let (board, writers) = board::create(page, geometry, settings).expect("the page fits");
    let page = Page::private(geometry.ledger().words);
    let ledger = Ledger::create(page, geometry).expect("the page fits");
    let tenant = TenantPages {
        writer: writers.tick,
        ledger,
    };
    (tenant, board, writers.seats, ledger)
}

impl Bench {
    pub(crate) fn new(plan: Plan) -> Self {
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
    pub(crate) fn tick(&mut self, ticks: u32, busy_percent: u64) {
        for _tick in 0..ticks {
            self.go_on(busy_percent);
            self.driver.tick(self.now_ns, LATE);
        }
    }

    /// The same, and how often the ticks allocated.
    pub(crate) fn allocations(&mut self, ticks: u32, busy_percent: u64) -> u64 {
        let mut allocations = 0;
        for _tick in 0..ticks {
            self.go_on(busy_percent);
            let (driver, now_ns) = (&mut self.driver, self.now_ns);
            let seen = allocation_counter::measure(|| driver.tick(now_ns, LATE));
            allocations += seen.count_total;
        }
        allocations
    }

    /// A tick's time goes by, in which the host's CPUs are so busy.
    fn go_on(&mut self, busy_percent: u64) {
        self.now_ns += TICK_NS;
        self.busy += busy_percent;
        self.idle += 100 - busy_percent;
        let (busy, idle) = (self.busy, self.idle);
        let stat = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0\ncpu1 0\n");
        write(self.dir.path(), "proc/stat", &stat);
    }

    pub(crate) fn add_group(&self, path: &str) {
        write(self.dir.path(), &format!("cgroup{path}/cpu.max"), "max\n");
        // The list of its processes; groups above it have one too.
        let top = Path::new(path);
        for group in top.ancestors() {
            let below = group.strip_prefix("/").unwrap_or(group);
            let list = Path::new("cgroup").join(below).join("cgroup.procs");
            write(self.dir.path(), &list.to_string_lossy(), "");
        }
    }

    /// Asks for the scope of a process, as a door does, and ticks until there is an answer.
    pub(crate) fn scope_of(&mut self, pid: u32) -> u32 {
        self.scope_id_of(pid).place
    }

    /// The same with the generation of the scope's place.
    pub(crate) fn scope_id_of(&mut self, pid: u32) -> ScopeId {
        let finder = self.handle.scope_finder();
        let asking = std::thread::spawn(move || finder.scope_of(pid));
        while !asking.is_finished() {
            self.tick(1, 10);
        }
        asking.join().expect("it was answered")
    }

    /// What a group has used of the CPU so far.
    pub(crate) fn use_cpu(&self, path: &str, usage_usec: u64) {
        let stat = format!("usage_usec {usage_usec}\n");
        write(self.dir.path(), &format!("cgroup{path}/cpu.stat"), &stat);
    }

    /// Seats a service in this scope.
    pub(crate) fn seat(&mut self, seat: u32, scope: u32) {
        self.hold(seat, scope, 0);
    }

    /// So many requests of a seated service begin and end well.
    pub(crate) fn work(&self, seat: u32, requests: u32) {
        self.work_on(self.board, self.ledger, seat, requests);
    }

    /// The same of a service of the other tenant.
    pub(crate) fn work_of_other(&self, seat: u32, requests: u32) {
        let (board, _seats, ledger) = &self.other;
        self.work_on(*board, *ledger, seat, requests);
    }

    fn work_on(&self, board: Board, ledger: Ledger, seat: u32, requests: u32) {
        let generation = board.seat(seat).generation;
        let gate = Gate::new(board, ledger, seat, generation);
        let (clock, lane) = (Stopped(self.now_ns), Lane::numbered(1));
        for pass in enter(&gate, &clock, requests) {
            gate.exit(&clock, lane, pass, Outcome::Ok);
        }
    }

    /// Holds requests of a service in this scope.
    pub(crate) fn hold(&mut self, seat: u32, scope: u32, requests: u32) -> Vec<Pass> {
        let pages = (self.board, &mut self.seats, self.ledger);
        hold(pages, self.now_ns, (seat, scope), requests)
    }

    /// The same of a service of the other tenant.
    pub(crate) fn hold_of_other(&mut self, seat: u32, scope: u32, requests: u32) -> Vec<Pass> {
        let (board, seats, ledger) = &mut self.other;
        let pages = (*board, seats, *ledger);
        hold(pages, self.now_ns, (seat, scope), requests)
    }
}

/// Requests that a service with a seat of its own holds, of so many that it asks for.
pub(crate) fn hold(
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
    enter(&gate, &Stopped(now_ns), requests)
}

/// The passes of so many requests.
fn enter(gate: &Gate, clock: &Stopped, requests: u32) -> Vec<Pass> {
    let slot = board::Slot {
        index: 0,
        generation: 0,
    };
    let entered = (0..requests).filter_map(|_request| {
        match gate.enter(clock, Lane::numbered(1), slot, Request::default()) {
            Step::Done(GateVerdict::Admitted(pass)) => Some(pass),
            Step::Done(GateVerdict::Refused(_) | GateVerdict::Stale) | Step::Wait(_) => None,
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

pub(crate) fn write(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    let parent = path.parent().expect("it is below the directory");
    fs::create_dir_all(parent).expect("the directory can be made");
    fs::write(path, content).expect("the file can be written");
}

pub(crate) fn declared(name: &str, cgroup: &str) -> DeclaredGroup {
    DeclaredGroup {
        name: name.into(),
        cgroup: cgroup.into(),
        cpus: None,
        settings: Arc::default(),
    }
}

/// Two services of three processes in the host: one that holds 90 requests and one that holds 4.
pub(crate) fn overloaded() -> Bench {
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
