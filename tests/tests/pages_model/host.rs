//! The process that has the pages: it seats the others, kills some, publishes rules, and compares.

use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::{self, Board, Process, Record, RuleSet, Settings, Writers};
use tidegate_segment::gate::Gate;
use tidegate_segment::ledger::{Ledger, NodeCounts};
use tidegate_segment::os::child::fork;
use tidegate_segment::os::memfd::{self, Kind};
use tidegate_segment::page::Page;
use tidegate_segment::sync::Ordering;
use tidegate_tests::until::SOON;

use crate::diary::{self, Count, Diary, Doing};
use crate::random::Random;
use crate::resource::{
    FIRST_SLOT, LIMITS, OF_VALUES, RESOURCES, RUNNING, RUNNING_SETS, TOKEN_SETS, TOKENS, VALUES,
    bucket, record, rules, slot, value,
};
use crate::worker::{END, Stage, Worker};

const WORKERS: usize = 4;
const HALF_SECOND: u64 = 500_000_000;
const START_NS: u64 = 1_000 * HALF_SECOND;

/// A number that is known but for the steps that those were in who died in this round.
#[derive(Debug, Clone, Copy, Default)]
struct About {
    least: u64,
    doubt: u64,
}

impl About {
    /// What of the doubt turned out to be so.
    fn check(self, what: &str, seen: u64) -> u64 {
        let Self { least, doubt } = self;
        let most = least + doubt;
        assert!(
            (least..=most).contains(&seen),
            "{what}: {seen}, not {least} to {most}"
        );
        seen - least
    }

    fn settle(&mut self, so: u64) {
        self.least += so;
        self.doubt = 0;
    }
}

/// What the dead did.
#[derive(Debug, Clone, Default)]
struct Past {
    passed: [About; RESOURCES],
    refused: [About; RESOURCES],
    ended: [About; RESOURCES],
    value_took: [About; VALUES],
    /// Counts of seats that were cleared.
    kept: [NodeCounts; RESOURCES],
}

/// Passes of a round, as the diaries have them.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    /// All up to its end.
    passed: u64,
    /// Of this round alone, of those who died in it.
    doubt: u64,
}

pub(crate) struct Host {
    random: Random,
    board: Board,
    ledger: Ledger,
    writers: Writers,
    stage: Stage,
    diaries: [Diary; WORKERS],
    workers: Vec<Pid>,
    past: Past,
    /// Passes of the dead, by their diaries.
    dead_passed: [u64; RESOURCES],
    /// This round, the last one, and the one before.
    rounds: [[Round; RESOURCES]; 3],
    round: u64,
    kills: u64,
    publishes: u64,
}

fn shared(words: usize) -> Page {
    let (page, _file) = memfd::create(Kind::Ledger, words).expect("memory is there");
    page
}

impl Host {
    pub(crate) fn new(mut random: Random) -> Self {
        let geometry = Geometry::new(16, 16, 3, 1).expect("sizes are allowed");
        let settings = Settings {
            generation: 1,
            time_to_live_ns: u64::MAX,
            grace_ns: u64::MAX,
            loss_mode: LossMode::Open,
        };
        let page = shared(geometry.board().words);
        let (board, mut writers) = board::create(page, geometry, settings).expect("large enough");
        let ledger =
            Ledger::create(shared(geometry.ledger().words), geometry).expect("large enough");
        for name in 0..FIRST_SLOT as usize + RESOURCES {
            let added = match name.checked_sub(FIRST_SLOT as usize) {
                Some(OF_VALUES) => writers
                    .rules
                    .add("values", &record(OF_VALUES, 0), &rules(0)),
                Some(resource) => {
                    writers
                        .rules
                        .add(&format!("r{resource}"), &record(resource, 0), &[])
                }
                None => writers
                    .rules
                    .add(&format!("of the host {name}"), &Record::default(), &[]),
            };
            added.expect("there is room");
        }
        let stage = shared(2).words();
        let stage = Stage {
            round: &stage[0],
            now_ns: &stage[1],
        };
        stage.now_ns.store(START_NS, Ordering::SeqCst);
        let diaries = shared(WORKERS * diary::WORDS);
        let mut host = Self {
            board,
            ledger,
            writers,
            stage,
            diaries: std::array::from_fn(|worker| Diary::of(diaries, worker)),
            workers: Vec::new(),
            past: Past::default(),
            dead_passed: [0; RESOURCES],
            rounds: Default::default(),
            round: 0,
            kills: 0,
            publishes: 0,
            random: random.split(),
        };
        host.workers = (0..WORKERS).map(|worker| host.bear(worker)).collect();
        host
    }

    pub(crate) const fn kills(&self) -> u64 {
        self.kills
    }

    pub(crate) const fn publishes(&self) -> u64 {
        self.publishes
    }

    pub(crate) fn story(&self) -> String {
        let [_, last, _] = &self.rounds;
        let passed: u64 = last.iter().map(|round| round.passed).sum();
        format!(
            "{} rounds, {passed} passes, {} kills, {} publishes",
            self.round, self.kills, self.publishes
        )
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

    /// One round: all work, some die, and then the pages are compared.
    pub(crate) fn round(&mut self) {
        self.round += 1;
        self.stage
            .now_ns
            .store(START_NS + self.round * HALF_SECOND, Ordering::SeqCst);
        self.stage.round.store(self.round, Ordering::SeqCst);
        let publishes = self.random.below(3) == 0;
        let victim = (self.random.below(2) == 0).then(|| self.random.below(WORKERS as u64));
        self.spin();
        if publishes {
            self.publish();
        }
        let victim = victim.map(|victim| usize::try_from(victim).expect("a small number"));
        if let Some(victim) = victim {
            self.spin();
            self.kill(victim);
        }
        self.wait_for_all_but(victim);
        if let Some(victim) = victim {
            self.bury(victim);
        }
        self.compare();
        if let Some(victim) = victim {
            self.workers[victim] = self.bear(victim);
        }
        let [this, last, _] = self.rounds;
        self.rounds = [Default::default(), this, last];
    }

    /// Lets the others work for a moment.
    fn spin(&mut self) {
        for _turn in 0..self.random.below(20_000) {
            std::hint::spin_loop();
        }
    }

    /// The same rules under other numbers.
    fn publish(&mut self) {
        self.publishes += 1;
        let number = u32::try_from(self.publishes).expect("a small number");
        let rules = rules(number);
        let set = RuleSet {
            rules: &rules,
            ..RuleSet::default()
        };
        let of = |index: u32| {
            usize::try_from(index)
                .ok()?
                .checked_sub(FIRST_SLOT as usize)
        };
        let published = self.writers.rules.publish(set, |slot| {
            of(slot.index).map_or_else(Record::default, |resource| record(resource, number))
        });
        published.expect("there is room");
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
        for resource in 0..RESOURCES {
            let counts = self
                .ledger
                .seat_node_counts(&self.board, seat, slot(resource));
            self.past.kept[resource].keep(&counts);
        }
        self.ledger.clear_seat(seat, self.board.resources_used());
        let diary = self.diaries[victim];
        let (mut entering, mut leaving) = ([0; RESOURCES], [0; RESOURCES]);
        let mut value_entering = [0; VALUES];
        match diary.doing() {
            Doing::Nothing => {}
            Doing::Entering(resource, value) => {
                entering[resource] = 1;
                value_entering[value] = u64::from(resource == OF_VALUES);
            }
            Doing::Leaving(resource) => leaving[resource] = 1,
        }
        let add = |about: &mut About, count: Count, doubt: u64| {
            about.least += diary.get(count);
            about.doubt += doubt;
        };
        for resource in 0..RESOURCES {
            self.dead_passed[resource] += diary.get(Count::Passed(resource));
            self.rounds[0][resource].doubt += entering[resource];
            let Past {
                passed,
                refused,
                ended,
                ..
            } = &mut self.past;
            add(
                &mut passed[resource],
                Count::Passed(resource),
                entering[resource],
            );
            add(
                &mut refused[resource],
                Count::Refused(resource),
                entering[resource],
            );
            add(
                &mut ended[resource],
                Count::Ended(resource),
                leaving[resource],
            );
        }
        for (value, about) in self.past.value_took.iter_mut().enumerate() {
            add(about, Count::ValueTook(value), value_entering[value]);
        }
        diary.clear();
    }

    /// A count of the dead and the living.
    fn all(&self, dead: About, count: Count) -> About {
        let living: u64 = self.diaries.iter().map(|diary| diary.get(count)).sum();
        About {
            least: dead.least + living,
            ..dead
        }
    }

    fn compare(&mut self) {
        for resource in 0..RESOURCES {
            self.compare_counts(resource);
            self.compare_window(resource);
        }
        for value in 0..VALUES {
            self.compare_value(value);
        }
    }

    fn what(&self, name: &str, number: usize) -> String {
        format!("round {}, {name} {number}", self.round)
    }

    fn compare_counts(&mut self, resource: usize) {
        let mut counts = self.ledger.node_counts(&self.board, slot(resource));
        let inflight = counts.inflight;
        counts.keep(&self.past.kept[resource]);
        let held = self.all(About::default(), Count::Held(resource));
        held.check(&self.what("in flight of resource", resource), inflight);
        if let Some(limit) = LIMITS[resource].inflight {
            assert!(
                inflight <= u64::from(limit),
                "{inflight} in flight of {limit}"
            );
        }
        let Past {
            passed,
            refused,
            ended,
            ..
        } = &self.past;
        let all_refused: u64 = counts.refused.iter().sum();
        let checks = [
            (
                "passes",
                passed[resource],
                Count::Passed(resource),
                counts.passed,
            ),
            (
                "refusals",
                refused[resource],
                Count::Refused(resource),
                all_refused,
            ),
            (
                "ends",
                ended[resource],
                Count::Ended(resource),
                counts.success,
            ),
        ];
        let turned_out = checks.map(|(name, dead, count, seen)| {
            let name = format!("{name} of resource");
            self.all(dead, count)
                .check(&self.what(&name, resource), seen)
        });
        let Past {
            passed,
            refused,
            ended,
            ..
        } = &mut self.past;
        for (about, so) in [passed, refused, ended].into_iter().zip(turned_out) {
            about[resource].settle(so);
        }
    }

    /// The window has what passed in this round and the one before.
    fn compare_window(&mut self, resource: usize) {
        let dead = self.dead_passed[resource];
        let living = self.all(About::default(), Count::Passed(resource)).least;
        self.rounds[0][resource].passed = dead + living;
        let Some(limit) = LIMITS[resource].passes.map(u64::from) else {
            return;
        };
        let now_ns = self.stage.now_ns.load(Ordering::SeqCst);
        let node = self.ledger.node(slot(resource).index).expect("a node");
        let seen = u64::from(node.window(now_ns).sum());
        let [this, last, before] = self.rounds.map(|round| round[resource]);
        let window = About {
            least: this.passed - before.passed,
            doubt: this.doubt + last.doubt,
        };
        window.check(&self.what("window of resource", resource), seen);
        assert!(seen <= limit, "{seen} in a window of {limit}");
        let refused = self
            .all(About::default(), Count::WindowFull(resource))
            .least;
        assert!(
            refused == 0 || seen == limit,
            "refused at {seen} of {limit}"
        );
    }

    fn compare_value(&mut self, number: usize) {
        let key = |sets| {
            self.ledger
                .value_key(sets, value(number))
                .expect("there are sets")
        };
        let running = self.ledger.running(&self.board, key(RUNNING_SETS));
        let held = self.all(About::default(), Count::ValueHeld(number));
        held.check(&self.what("calls of value", number), running);
        assert!(
            running <= u64::from(RUNNING),
            "{running} calls of {RUNNING}"
        );
        let now_ns = self.stage.now_ns.load(Ordering::SeqCst);
        let look = |state| (bucket().tokens(state, now_ns), None);
        let left = self.ledger.step_value(key(TOKEN_SETS), |_state| 0, look);
        let taken = u64::from(TOKENS - left.expect("nobody else is there"));
        let took = self.all(self.past.value_took[number], Count::ValueTook(number));
        let so = took.check(&self.what("tokens of value", number), taken);
        self.past.value_took[number].settle(so);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stage.round.store(END, Ordering::SeqCst);
        for worker in &self.workers {
            // One that does not end by itself is killed; a test that failed may have left it dead.
            let _killed = kill_process(*worker, Signal::KILL);
            let _waited = waitpid(Some(*worker), WaitOptions::empty());
        }
    }
}
