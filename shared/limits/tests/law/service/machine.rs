//! The event loop of the simulated service.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use tidegate_abi::board::ScopeWord;
use tidegate_limits::law::Sample;

use super::door::Door;
use super::random::Random;
use super::{Caller, Fate, Phase, Service, TICK_S};

const BACKLOG: usize = 4096;

/// A request's number, due at a time (or at an amount of work).
#[derive(PartialEq)]
struct Due(f64, usize);

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy)]
enum Stage {
    Deciding,
    FirstHalf,
    SecondHalf,
}

struct Request {
    work_s: f64,
    admitted_s: f64,
    stage: Stage,
}

pub(super) struct Machine {
    service: Service,
    random: Random,
    now_s: f64,
    rate_qps: f64,
    neighbours: f64,
    slower: f64,
    next_arrival_s: f64,
    /// Work done so far by a task that ran all the time.
    progress: f64,
    computing: BinaryHeap<Reverse<Due>>,
    waiting: BinaryHeap<Reverse<Due>>,
    accept_queue: VecDeque<usize>,
    busy_workers: usize,
    pub(super) door: Door,
    live: Vec<Request>,
    own_cpu_s: f64,
    busy_cpu_s: f64,
    queue_s: f64,
    sample: Sample,
    pub(super) requests: Vec<(f64, Fate)>,
    pub(super) callers: Vec<usize>,
    pub(super) refusals: Vec<f64>,
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

impl Machine {
    pub(super) fn new(service: Service, seed: u64) -> Self {
        Self {
            service,
            random: Random::new(seed),
            now_s: 0.0,
            rate_qps: 0.0,
            neighbours: 0.0,
            slower: 1.0,
            next_arrival_s: f64::INFINITY,
            progress: 0.0,
            computing: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            accept_queue: VecDeque::new(),
            busy_workers: 0,
            door: Door::default(),
            live: Vec::new(),
            own_cpu_s: 0.0,
            busy_cpu_s: 0.0,
            queue_s: 0.0,
            sample: Sample::default(),
            requests: Vec::new(),
            callers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, phase: &Phase) {
        self.neighbours = phase.neighbours;
        self.slower = phase.slower;
        self.rate_qps = phase.load * self.service.capacity_qps();
        self.next_arrival_s = self.now_s + self.random.exponential(1.0 / self.rate_qps);
    }

    /// Runs until `until_s` under one word of the board and returns what the tick measured.
    pub(super) fn advance(&mut self, until_s: f64, word: ScopeWord) -> Sample {
        loop {
            let speed = self.speed();
            let computed_s = self.computing.peek().map_or(f64::INFINITY, |next| {
                self.now_s + (next.0.0 - self.progress).max(0.0) / speed
            });
            let waited_s = self.waiting.peek().map_or(f64::INFINITY, |next| next.0.0);
            let next_s = self
                .next_arrival_s
                .min(computed_s)
                .min(waited_s)
                .min(until_s);
            self.pass(next_s - self.now_s, speed);
            self.now_s = next_s;
            if next_s >= until_s {
                return self.take_sample();
            } else if next_s == self.next_arrival_s {
                self.arrive();
            } else if next_s == computed_s {
                self.end_computing(word);
            } else if let Some(Reverse(Due(_, number))) = self.waiting.pop() {
                self.compute(number, self.live[number].work_s / 2.0, Stage::SecondHalf);
            }
        }
    }

    /// Speed of each computing task.
    fn speed(&self) -> f64 {
        let tasks = real(self.computing.len()) + self.neighbours;
        (self.service.cpus / tasks.max(1e-9)).min(1.0)
    }

    fn pass(&mut self, span_s: f64, speed: f64) {
        let own = real(self.computing.len());
        self.progress += span_s * speed;
        self.own_cpu_s += own * speed * span_s;
        self.busy_cpu_s += (own + self.neighbours).min(self.service.cpus) * span_s;
        self.queue_s += own * (1.0 - speed) * span_s;
    }

    fn arrive(&mut self) {
        self.next_arrival_s = self.now_s + self.random.exponential(1.0 / self.rate_qps);
        let work_s = if self.service.constant_work {
            self.service.work_s
        } else {
            self.random.exponential(self.service.work_s)
        };
        let number = self.requests.len();
        self.requests.push((self.now_s, Fate::Lost));
        let caller = self.pick_caller();
        self.callers.push(caller);
        self.live.push(Request {
            work_s,
            admitted_s: 0.0,
            stage: Stage::Deciding,
        });
        match self.service.workers {
            Some(workers) if self.busy_workers >= workers => {
                if self.accept_queue.len() < BACKLOG {
                    self.accept_queue.push_back(number);
                }
            }
            _ => self.pick_up(number),
        }
    }

    fn pick_caller(&mut self) -> usize {
        let callers = self.service.callers;
        if callers.len() < 2 {
            return 0;
        }
        let mut left = self.random.unit();
        let found = callers.iter().position(|caller| {
            left -= caller.share;
            left <= 0.0
        });
        found.unwrap_or(callers.len() - 1)
    }

    fn pick_up(&mut self, number: usize) {
        self.busy_workers += 1;
        let cost_s = self.service.decision_cost * self.service.work_s;
        self.compute(number, cost_s, Stage::Deciding);
    }

    fn compute(&mut self, number: usize, work_s: f64, stage: Stage) {
        self.live[number].stage = stage;
        self.computing
            .push(Reverse(Due(self.progress + work_s, number)));
    }

    fn end_computing(&mut self, word: ScopeWord) {
        let Some(Reverse(Due(_, number))) = self.computing.pop() else {
            return;
        };
        match self.live[number].stage {
            Stage::Deciding => self.decide(number, word),
            Stage::FirstHalf if self.service.wait_s > 0.0 => {
                let wait_s = self.random.exponential(self.service.wait_s) * self.slower;
                self.waiting.push(Reverse(Due(self.now_s + wait_s, number)));
            }
            Stage::FirstHalf => {
                self.compute(number, self.live[number].work_s / 2.0, Stage::SecondHalf);
            }
            Stage::SecondHalf => self.answer(number),
        }
    }

    fn decide(&mut self, number: usize, word: ScopeWord) {
        let waiting = self.readable_accept_queue().unwrap_or(0);
        let caller = self.caller(number);
        // A number as good as any: what matters is that it differs.
        let key = (self.now_s * 1e9).to_bits();
        if self.door.admits(word, waiting, caller, key, self.now_s) {
            self.sample.passed += 1;
            self.live[number].admitted_s = self.now_s;
            self.compute(number, self.live[number].work_s / 2.0, Stage::FirstHalf);
        } else {
            self.requests[number].1 = Fate::Refused;
            self.refusals.push(self.now_s);
            self.sample.shed += 1;
            self.free_worker();
        }
    }

    fn caller(&self, number: usize) -> &'static Caller {
        &self.service.callers[self.callers[number]]
    }

    fn answer(&mut self, number: usize) {
        self.door.held[self.caller(number).service] -= 1;
        self.sample.successes += 1;
        let rt_s = self.now_s - self.live[number].admitted_s;
        self.sample.rt_ns +=
            u64::try_from(std::time::Duration::from_secs_f64(rt_s).as_nanos()).unwrap();
        let after_s = self.now_s - self.requests[number].0;
        self.requests[number].1 = Fate::Answered { after_s };
        self.free_worker();
    }

    fn free_worker(&mut self) {
        self.busy_workers -= 1;
        if let Some(number) = self.accept_queue.pop_front() {
            self.pick_up(number);
        }
    }

    fn readable_accept_queue(&self) -> Option<u32> {
        self.service
            .queues_readable
            .then(|| u32::try_from(self.accept_queue.len()).unwrap())
    }

    fn take_sample(&mut self) -> Sample {
        let whole_s = self.service.cpus * TICK_S;
        let read = |cpu_s: f64| Some((cpu_s / whole_s * self.service.cpu_reading).min(1.0));
        let sample = Sample {
            tick_ns: 100_000_000,
            cpus: Some(self.service.cpus),
            inflight: self.door.held.iter().sum(),
            accept_queue: self.readable_accept_queue(),
            busy: read(self.busy_cpu_s),
            own: read(self.own_cpu_s),
            waiters: self
                .service
                .queues_readable
                .then_some(self.queue_s / TICK_S),
            ..self.sample
        };
        self.sample = Sample::default();
        (self.own_cpu_s, self.busy_cpu_s, self.queue_s) = (0.0, 0.0, 0.0);
        sample
    }
}
