//! The process that has the pages: it seats the others, kills some, publishes rules, takes slots back, and
//! compares.

mod compare;
mod past;
mod tenure;

use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{self, Board, BoardSettings, Process, Writers};
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::Ledger;
use tidegate_segment::os::child::fork;
use tidegate_segment::os::memfd::{self, MemoryKind};
use tidegate_segment::page::Page;
use tidegate_tests::until::SOON;

use self::past::Past;
use self::tenure::Tenure;
use crate::diary::{self, Diary};
use crate::random::Random;
use crate::resource::PLACES;
use crate::stage::{self, Stage};
use crate::worker::Worker;

const WORKERS: usize = 4;
const HALF_SECOND: u64 = 500_000_000;
const START_NS: u64 = 1_000 * HALF_SECOND;

pub(crate) struct Host {
    random: Random,
    board: Board,
    ledger: Ledger,
    writers: Writers,
    stage: Stage,
    diaries: [Diary; WORKERS],
    workers: Vec<Pid>,
    /// By place.
    tenures: Vec<Tenure>,
    past: Past,
    round: u64,
    kills: u64,
    publishes: u64,
    closes: u64,
}

fn shared(words: usize) -> Page {
    let (page, _file) = memfd::create(MemoryKind::Ledger, words).expect("memory is there");
    page
}

impl Host {
    pub(crate) fn new(mut random: Random) -> Self {
        let geometry = Geometry::new(16, 16, 3, 1).expect("sizes are allowed");
        let settings = BoardSettings {
            generation: 1,
            time_to_live_ns: u64::MAX,
            grace_ns: u64::MAX,
            loss_mode: LossMode::Open,
        };
        let page = shared(geometry.board().words);
        let (board, writers) = board::create(page, geometry, settings).expect("large enough");
        let ledger =
            Ledger::create(shared(geometry.ledger().words), geometry).expect("large enough");
        let stage = Stage::of(shared(stage::WORDS));
        stage.begin(0, START_NS);
        let diaries = shared(WORKERS * diary::WORDS);
        let mut host = Self {
            board,
            ledger,
            writers,
            stage,
            diaries: std::array::from_fn(|worker| Diary::of(diaries, worker)),
            workers: Vec::new(),
            tenures: Vec::new(),
            past: Past::default(),
            round: 0,
            kills: 0,
            publishes: 0,
            closes: 0,
            random: random.split(),
        };
        host.add_all();
        host.workers = (0..WORKERS).map(|worker| host.bear(worker)).collect();
        host
    }

    /// Whether each kind of event has come.
    pub(crate) const fn has_seen_all(&self) -> bool {
        self.kills > 0 && self.publishes > 0 && self.closes > 0
    }

    pub(crate) fn story(&self) -> String {
        let Self {
            round,
            kills,
            publishes,
            closes,
            ..
        } = self;
        format!("{round} rounds, {kills} kills, {publishes} publishes, {closes} slots taken back")
    }

    /// A new process for a place.
    fn bear(&mut self, worker: usize) -> Pid {
        let seat = u32::try_from(worker + 1).expect("a small number");
        let process = Process {
            pid: seat,
            start: self.round,
            uid: 0,
            scope: 0,
        };
        let generation = self
            .writers
            .seats
            .seat(seat, process)
            .expect("the seat is free");
        self.diaries[worker].clear();
        let work = Worker {
            gate: Gate::new(self.board, self.ledger, seat, generation),
            stage: self.stage,
            diary: self.diaries[worker],
            random: self.random.split(),
        };
        let done = self.round;
        fork(|| work.work(done)).expect("a process more")
    }

    /// One round: all work, some die, slots go, and then the pages are compared.
    pub(crate) fn round(&mut self) {
        self.round += 1;
        let now_ns = START_NS + self.round * HALF_SECOND;
        self.stage.begin(self.round, now_ns);
        let publishes = self.random.below(3) == 0;
        let closes = self.choose(PLACES);
        let victim = self.choose(WORKERS);
        self.spin();
        if publishes {
            self.publish();
        }
        if let Some(place) = closes {
            self.spin();
            self.close(place);
        }
        if let Some(victim) = victim {
            self.spin();
            self.kill(victim);
        }
        self.wait_for_all_but(victim);
        if let Some(victim) = victim {
            self.bury(victim);
        }
        self.compare();
        self.give_again();
        if let Some(victim) = victim {
            self.workers[victim] = self.bear(victim);
        }
        self.past.turn();
    }

    /// One of so many, every other time.
    fn choose(&mut self, of: usize) -> Option<usize> {
        let chosen = (self.random.below(2) == 0).then(|| self.random.below(of as u64));
        chosen.map(|chosen| usize::try_from(chosen).expect("a small number"))
    }

    /// Lets the others work for a moment.
    fn spin(&mut self) {
        for _turn in 0..self.random.below(20_000) {
            std::hint::spin_loop();
        }
    }

    fn kill(&mut self, victim: usize) {
        self.kills += 1;
        let pid = self.workers[victim];
        kill_process(pid, Signal::KILL).expect("it can be killed");
        waitpid(Some(pid), WaitOptions::empty()).expect("it can be waited for");
    }

    fn wait_for_all_but(&self, victim: Option<usize>) {
        let begin = Instant::now();
        for (worker, diary) in self.diaries.iter().enumerate() {
            while Some(worker) != victim && diary.round() != self.round {
                assert!(
                    begin.elapsed() < SOON,
                    "worker {worker} is not ready: {diary:?}"
                );
                std::thread::yield_now();
            }
        }
    }

    /// Takes a dead process' seat away and adds what it did to the past.
    fn bury(&mut self, victim: usize) {
        let seat = u32::try_from(victim + 1).expect("a small number");
        self.writers.seats.revoke(seat);
        for (past, tenure) in self.past.places.iter_mut().zip(&self.tenures) {
            let counts = self
                .ledger
                .seat_node_counts(&self.board, seat, tenure.slot());
            past.kept.keep(&counts);
        }
        self.ledger.clear_seat(seat, self.board.resources_used());
        let diary = self.diaries[victim];
        let tenures = &self.tenures;
        self.past.bury(diary, |place, generation| {
            u64::from(tenures[place].slot().generation) == generation
        });
        diary.clear();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stage.end();
        for worker in &self.workers {
            // One that does not end by itself is killed; a test that failed may have left it dead.
            let _killed = kill_process(*worker, Signal::KILL);
            let _waited = waitpid(Some(*worker), WaitOptions::empty());
        }
    }
}
