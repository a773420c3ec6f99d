//! A pool of workers behind the law, one of whose resources waits for something slow while the CPU is idle.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a simulation that contradicts itself must fail loudly"
)]

use std::collections::VecDeque;

use tidegate_abi::decision::ScopeState;
use tidegate_limits::bulkhead::{
    self, BulkheadChange, BulkheadResource, Bulkheads, Lately, ScopeLook, UsualUse,
};
use tidegate_limits::law::{FAR_OVER, Law, LawSettings, PublishedLimits, Sample};

use crate::service::random::Random;

const TICK_NS: u64 = 100_000_000;
const STEPS_A_TICK: u64 = 100;
const STEP_NS: u64 = TICK_NS / STEPS_A_TICK;
/// CPU work of each request, and what an answer may take.
const WORK_MS: u64 = 5;
const DEADLINE_MS: u64 = 250;
/// Share of a tick that the work of a request takes.
const BUSY: f64 = 0.05;
const FAST: usize = 0;
const SLOW: usize = 1;

/// What asks for work, and how long its requests wait for others.
#[derive(Debug, Clone, Copy)]
struct Asked {
    qps: f64,
    /// Before and from the given second on.
    wait_ms: [u64; 2],
    slow_from_s: u64,
    slow_until_s: u64,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    resource: usize,
    came: u64,
    ends: u64,
}

/// What came of the requests of a resource in the judged part.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    came: u32,
    in_time: u32,
}

struct Pool {
    workers: usize,
    asked: [Asked; 2],
    /// Whether both are one resource to the bulkhead.
    one_resource: bool,
    /// Whether there is a bulkhead at all.
    bulkhead: bool,
    random: Random,
    queue: VecDeque<Job>,
    runs: Vec<Job>,
    law: Box<Law>,
    bulkheads: Bulkheads,
    usual: [UsualUse; 2],
    lately: [Lately; 2],
    /// Answers of the tick, and what they took, ns.
    answers: [(u64, u64); 2],
    limits: [Option<u32>; 2],
    changes: Vec<BulkheadChange>,
    tick: Sample,
    passed: [u64; 2],
    worst: ScopeState,
    /// Changes of state: second, state, tight limit, in flight.
    states: Vec<(u64, ScopeState, u32, u32)>,
}

impl Pool {
    fn new(workers: usize, asked: [Asked; 2]) -> Self {
        Self {
            workers,
            asked,
            one_resource: false,
            bulkhead: true,
            random: Random::new(7),
            queue: VecDeque::new(),
            runs: Vec::new(),
            law: Box::default(),
            bulkheads: Bulkheads::default(),
            usual: [UsualUse::default(); 2],
            lately: [Lately::default(); 2],
            answers: [(0, 0); 2],
            limits: [None; 2],
            changes: Vec::new(),
            tick: Sample::default(),
            passed: [0; 2],
            worst: ScopeState::Healthy,
            states: Vec::new(),
        }
    }

    fn held(&self, resource: usize) -> u32 {
        let jobs = self.queue.iter().chain(&self.runs);
        let held = jobs.filter(|job| job.resource == resource).count();
        u32::try_from(held).unwrap()
    }

    /// As the gate decides it: the scope first, then the limit of the resource.
    fn admits(&mut self, resource: usize) -> bool {
        let word = self.law.published().word();
        let held = self.held(FAST) + self.held(SLOW);
        let admits = match word.state {
            ScopeState::Cold => held < word.entry || !word.short,
            ScopeState::Healthy => {
                held < word.entry || (!word.short && held < word.entry * FAR_OVER)
            }
            ScopeState::Overload => held < word.tight,
            ScopeState::Reject => false,
        };
        if !admits {
            self.tick.shed += 1;
            return false;
        }
        self.limits[resource].is_none_or(|limit| self.held(resource) < limit)
    }

    fn step(&mut self, sample: &Sample, now_ns: u64) -> PublishedLimits {
        let before = self.law.published().state;
        let published = self.law.step(sample, &LawSettings::default());
        if published.state != before {
            let at = (now_ns / 1_000_000_000, published.state, published.tight);
            self.states.push((at.0, at.1, at.2, sample.inflight));
        }
        published
    }

    fn look(&mut self, now_ns: u64) {
        let held = [self.held(FAST), self.held(SLOW)];
        let capped = self.limits.iter().zip(held);
        let capped = capped.filter(|(limit, _held)| limit.is_some());
        let sample = Sample {
            tick_ns: TICK_NS,
            cpus: Some(1.0),
            inflight: held.iter().sum(),
            capped: capped.map(|(_limit, held)| held).sum(),
            accept_queue: Some(0),
            waiters: Some(0.0),
            ..self.tick
        };
        let published = self.step(&sample, now_ns);
        let passed = std::mem::take(&mut self.passed);
        let answers = std::mem::take(&mut self.answers);
        self.tick = Sample::default();
        if !self.bulkhead {
            return;
        }
        let overload = published.state == ScopeState::Overload;
        for (lately, (done, rt_ns)) in self.lately.iter_mut().zip(answers) {
            lately.take(done, rt_ns, TICK_NS);
        }
        for (resource, usual) in self.usual.iter_mut().enumerate() {
            if !overload {
                usual.learn(held[resource], passed[resource], TICK_NS);
            }
        }
        let resource = |resource: usize| BulkheadResource {
            key: u64::try_from(resource).unwrap(),
            held: held[resource],
            usual: self.usual[resource],
            lately: self.lately[resource],
            free: true,
        };
        let all = if self.one_resource {
            vec![BulkheadResource {
                held: held.iter().sum(),
                ..resource(FAST)
            }]
        } else {
            vec![resource(FAST), resource(SLOW)]
        };
        let now = ScopeLook {
            ns: now_ns,
            waits: published.waits,
            full: published.held >= published.entry,
            short: published.evidence.short(),
        };
        self.hold_or_let_go(&all, now);
    }

    fn hold_or_let_go(&mut self, all: &[BulkheadResource], now: ScopeLook) {
        let change = self
            .bulkheads
            .look(all, now, &bulkhead::BulkheadSettings::default());
        match change {
            Some(BulkheadChange::Hold { key, limit }) => {
                self.limits[usize::try_from(key).unwrap()] = Some(limit);
            }
            Some(BulkheadChange::LetGo { key, .. }) => {
                self.limits[usize::try_from(key).unwrap()] = None;
            }
            None => {}
        }
        self.changes.extend(change);
    }

    /// Runs so many seconds and judges what came from second `from_s` on.
    fn run(&mut self, from_s: u64, until_s: u64) -> [Outcome; 2] {
        let mut outcomes = [Outcome::default(); 2];
        for step in 0..until_s * 1000 {
            let judged = step >= from_s * 1000;
            for resource in [FAST, SLOW] {
                let asked = self.asked[resource];
                if self.random.unit() >= asked.qps / 1000.0 {
                    continue;
                }
                outcomes[resource].came += u32::from(judged);
                if self.admits(resource) {
                    self.passed[resource] += 1;
                    self.tick.passed += 1;
                    self.queue.push_back(Job {
                        resource,
                        came: step,
                        ends: 0,
                    });
                }
            }
            let (ended, runs) = self.runs.iter().partition(|job| job.ends <= step);
            self.runs = runs;
            let ended: Vec<Job> = ended;
            for job in ended {
                let took_ms = step - job.came;
                self.tick.successes += 1;
                self.tick.rt_ns += took_ms * STEP_NS;
                let (done, rt_ns) = self.answers[job.resource];
                self.answers[job.resource] = (done + 1, rt_ns + took_ms * STEP_NS);
                let judged = job.came >= from_s * 1000;
                outcomes[job.resource].in_time += u32::from(judged && took_ms <= DEADLINE_MS);
            }
            while self.runs.len() < self.workers
                && let Some(mut job) = self.queue.pop_front()
            {
                let asked = self.asked[job.resource];
                let slow = (asked.slow_from_s..asked.slow_until_s).contains(&(step / 1000));
                job.ends = step + WORK_MS + asked.wait_ms[usize::from(slow)];
                self.runs.push(job);
                let busy = (self.tick.busy.unwrap_or(0.0) + BUSY).min(1.0);
                (self.tick.busy, self.tick.own) = (Some(busy), Some(busy));
            }
            if step % STEPS_A_TICK == STEPS_A_TICK - 1 {
                self.tick.busy.get_or_insert(0.0);
                self.tick.own.get_or_insert(0.0);
                self.look((step + 1) * STEP_NS);
                self.worst = self.worst.max(self.law.published().state);
            }
        }
        outcomes
    }
}

fn quick(qps: f64) -> Asked {
    Asked {
        qps,
        wait_ms: [0; 2],
        slow_from_s: 0,
        slow_until_s: 0,
    }
}

fn share(outcome: Outcome) -> f64 {
    f64::from(outcome.in_time) / f64::from(outcome.came)
}

#[test]
fn field_l12_a_slow_resource_is_held_and_the_others_are_answered_in_time() {
    // A fifth of the requests wait 2 s from the first moment on, or a tenth from second 20 on.
    for (workers, slow_qps, from_s) in [(32, 20.0, 0), (8, 9.4, 20)] {
        let slow = Asked {
            qps: slow_qps,
            wait_ms: [0, 2000],
            slow_from_s: from_s,
            slow_until_s: u64::MAX,
        };
        let mut pool = Pool::new(workers, [quick(84.0), slow]);
        let outcomes = pool.run(from_s + 6, from_s + 60);
        let in_time = share(outcomes[FAST]);
        assert!(
            in_time >= 0.95,
            "{workers} workers: {in_time} {:?} {:?}",
            pool.changes,
            pool.states
        );
        assert!(
            matches!(pool.changes[..], [BulkheadChange::Hold { key: 1, .. }]),
            "{:?}",
            pool.changes
        );
        let mut without = Pool::new(workers, [quick(84.0), slow]);
        without.bulkhead = false;
        let outcomes = without.run(from_s + 6, from_s + 60);
        let in_time = share(outcomes[FAST]);
        assert!(in_time < 0.8, "{workers} workers, none held: {in_time}");
    }
}

#[test]
fn field_l12_a_resource_is_let_go_when_it_is_quick_again() {
    let slow = Asked {
        qps: 20.0,
        wait_ms: [0, 2000],
        slow_from_s: 20,
        slow_until_s: 60,
    };
    let mut pool = Pool::new(32, [quick(78.0), slow]);
    let outcomes = pool.run(65, 120);
    assert!(
        matches!(
            pool.changes[..],
            [
                BulkheadChange::Hold { key: 1, .. },
                BulkheadChange::LetGo {
                    key: 1,
                    useless: false
                }
            ]
        ),
        "{:?}",
        pool.changes
    );
    for outcome in outcomes {
        assert!(share(outcome) > 0.99, "{outcome:?}");
    }
}

#[test]
fn field_l12_where_all_are_slow_or_all_is_one_resource_nobody_is_held() {
    let slow = |qps| Asked {
        qps,
        wait_ms: [0, 2000],
        slow_from_s: 20,
        slow_until_s: u64::MAX,
    };
    let mut pool = Pool::new(8, [slow(50.0), slow(48.0)]);
    pool.run(0, 60);
    assert_eq!(pool.worst, ScopeState::Overload);
    assert_eq!(pool.changes, []);
    let mut pool = Pool::new(8, [quick(84.0), slow(9.4)]);
    pool.one_resource = true;
    pool.run(0, 60);
    assert_eq!(pool.worst, ScopeState::Overload);
    assert_eq!(pool.changes, []);
}

#[test]
fn field_l12_where_slow_and_fast_are_one_resource_a_quarter_of_the_fast_is_answered_in_time() {
    let slow = Asked {
        qps: 9.4,
        wait_ms: [2000; 2],
        slow_from_s: 0,
        slow_until_s: 0,
    };
    let mut pool = Pool::new(8, [quick(84.0), slow]);
    pool.one_resource = true;
    let in_time = share(pool.run(10, 60)[FAST]);
    // Tuned by hand to this very pool, a limit that stands still reaches 0.4.
    assert!(in_time >= 0.25, "{in_time} {:?}", pool.states);
}

#[test]
fn field_l12_whoever_waits_is_told_from_the_others_by_what_its_answers_take() {
    // Workers, how long the slow ones wait, and times of what the workers can do of them; from the first moment on or
    // later.
    let cases = [8_u32, 32].map(|workers| [1000_u32, 2000].map(|wait_ms| (workers, wait_ms)));
    for (workers, wait_ms) in cases.into_iter().flatten() {
        for (times, from_s) in [(1.5, 0), (1.5, 20), (2.5, 0), (2.5, 20)] {
            let served = 1000.0 * f64::from(workers) / f64::from(wait_ms);
            let slow = Asked {
                qps: times * served,
                wait_ms: [0, u64::from(wait_ms)],
                slow_from_s: from_s,
                slow_until_s: u64::MAX,
            };
            let mut pool = Pool::new(usize::try_from(workers).unwrap(), [quick(84.0), slow]);
            let in_time = share(pool.run(from_s + 15, from_s + 40)[FAST]);
            let case = format!("{workers} workers, {wait_ms} ms, {times} times from {from_s} s");
            assert!(in_time >= 0.95, "{case}: {in_time} {:?}", pool.changes);
            let held = matches!(pool.changes[..], [BulkheadChange::Hold { key: 1, .. }]);
            assert!(held, "{case}: {:?}", pool.changes);
        }
    }
}

#[test]
fn field_l12_workers_that_are_just_enough_are_not_taken_either() {
    for seed in 1..=5 {
        let slow = Asked {
            qps: 15.2,
            wait_ms: [2000; 2],
            slow_from_s: 0,
            slow_until_s: u64::MAX,
        };
        let mut pool = Pool::new(32, [quick(80.0), slow]);
        pool.random = Random::new(seed);
        let in_time = share(pool.run(4, 24)[FAST]);
        assert!(in_time >= 0.95, "seed {seed}: {in_time} {:?}", pool.changes);
    }
}

#[test]
fn field_l12_by_chance_nobody_is_blamed_where_all_begin_to_wait() {
    for seed in 1..=5 {
        let slow = |qps| Asked {
            qps,
            wait_ms: [0, 2000],
            slow_from_s: 20,
            slow_until_s: u64::MAX,
        };
        let mut pool = Pool::new(8, [slow(50.0), slow(48.0)]);
        pool.random = Random::new(seed);
        pool.run(0, 40);
        assert_eq!(pool.changes, [], "seed {seed}");
    }
}
