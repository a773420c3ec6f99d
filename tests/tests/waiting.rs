//! What an agent does where requests wait for something else while the CPU is idle: it holds the resource that waits,
//! so that the others are answered, and tells of an incident how old it is.

#![cfg(test)]

use std::collections::VecDeque;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tidegate_client::{Client, Permit, Resource};
use tidegate_tests::agent::Agent;
use tidegate_tests::program::Program;
use tidegate_tests::quiet_host::QuietHost;

/// The pool's clock. Where the machine stands still it stands still as well, and the agent with it.
const STEP: Duration = Duration::from_millis(5);
const STEPS_A_SECOND: u64 = 200;
const WORKERS: usize = 8;
/// An answer after this is too late.
const DEADLINE_STEPS: u64 = STEPS_A_SECOND / 4;

/// The resources: name, and steps from one request to the next.
const ASKED: [(&str, u64); 3] = [("quick", 3), ("other", 10), ("slow", 15)];
const SLOW: usize = 2;

struct Job {
    permit: Permit,
    resource: usize,
    came: u64,
    ends: u64,
}

/// What came of the requests to the quick resources.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Outcome {
    came: f64,
    in_time: f64,
}

/// Workers behind one queue, as in the service of anybody.
struct Pool {
    resources: [Resource; 3],
    queue: VecDeque<Job>,
    runs: Vec<Job>,
    step: u64,
    workers: usize,
    /// How long requests of each resource wait for something else.
    waits: [u64; 3],
    judged_from: u64,
    outcome: Outcome,
    clock: (mpsc::Sender<()>, mpsc::Receiver<()>),
}

impl Pool {
    fn of(agent: &Agent) -> Self {
        let client = Client::builder().runtime_dir(agent.runtime_dir());
        let client = client.connect().expect("the agent is there");
        let resource = |name| client.resource(name).expect("it is a name");
        Self {
            resources: ASKED.map(|(name, _each)| resource(name)),
            queue: VecDeque::new(),
            runs: Vec::new(),
            step: 0,
            workers: WORKERS,
            waits: [0; 3],
            judged_from: 0,
            outcome: Outcome::default(),
            clock: mpsc::channel(),
        }
    }

    fn is_within(&self, resource: usize) -> bool {
        let held = self.queue.iter().chain(&self.runs);
        held.filter(|job| job.resource == resource).count() < WORKERS
    }

    fn judge_from_now(&mut self) {
        self.judged_from = self.step;
        self.outcome = Outcome::default();
    }

    fn run(&mut self, steps: u64) {
        for _step in 0..steps {
            self.step();
        }
    }

    /// Runs until `holds`, looked at ten times a second.
    fn run_until(&mut self, what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
        for _tenth in 0..seconds * 10 {
            if holds() {
                return;
            }
            self.run(STEPS_A_SECOND / 10);
        }
        panic!("{what}: not within {seconds} s");
    }

    fn step(&mut self) {
        // Nobody ever sends: a receive that times out is a wait for the clock.
        let _timed_out = self.clock.1.recv_timeout(STEP);
        self.step += 1;
        let step = self.step;
        let (ended, runs) = std::mem::take(&mut self.runs)
            .into_iter()
            .partition(|job| job.ends <= step);
        self.runs = runs;
        let ended: Vec<Job> = ended;
        for job in ended {
            let in_time = step - job.came <= DEADLINE_STEPS;
            if in_time && job.resource != SLOW && job.came >= self.judged_from {
                self.outcome.in_time += 1.0;
            }
            job.permit.ok();
        }
        for (resource, (_name, each)) in ASKED.iter().enumerate() {
            if step.is_multiple_of(*each) {
                self.ask(resource);
            }
        }
        while self.runs.len() < self.workers
            && let Some(mut job) = self.queue.pop_front()
        {
            job.ends = step + self.waits[job.resource] + 1;
            self.runs.push(job);
        }
    }

    fn ask(&mut self, resource: usize) {
        if resource != SLOW {
            self.outcome.came += 1.0;
        }
        if let Ok(permit) = self.resources[resource].enter() {
            self.queue.push_back(Job {
                permit,
                resource,
                came: self.step,
                ends: 0,
            });
        }
    }
}

fn host(agent: &Agent) -> Value {
    agent.get("/v1/status")["scopes"][0].clone()
}

/// A pool that has worked for long enough for the law to know it.
fn known(agent: &Agent) -> Pool {
    let mut pool = Pool::of(agent);
    pool.run_until("a scope that has learnt", 30, || {
        host(agent)["state"] == "healthy"
    });
    pool.run(2 * STEPS_A_SECOND);
    pool
}

#[test]
fn field_l12_a_slow_resource_of_several_is_held_without_a_rule_and_the_others_are_answered() {
    let quiet = QuietHost::start();
    let agent = Agent::start_logging_by(quiet.command(), "");
    let mut pool = known(&agent);
    // Thirteen of these a second would need thirteen workers.
    pool.waits[SLOW] = STEPS_A_SECOND;
    pool.run_until("a bulkhead", 30, || {
        agent.log().contains("event=\"bulkhead_begun\"")
    });
    let rules = agent.get("/v1/rules").to_string();
    assert!(rules.contains("bulkhead-slow"), "{rules}");
    // Those that were let in before are in the pool's queue: what is held afterwards is within the limit.
    for _second in 0..60 {
        if pool.is_within(SLOW) {
            break;
        }
        pool.run(STEPS_A_SECOND);
    }
    pool.run(STEPS_A_SECOND);
    pool.judge_from_now();
    pool.run(3 * STEPS_A_SECOND);
    let outcome = pool.outcome;
    let log = agent.log();
    assert!(outcome.in_time >= 0.95 * outcome.came, "{outcome:?}\n{log}");
    assert!(!log.contains("bulkhead_ended"), "{log}");
}

#[test]
fn field_l2_an_incident_is_told_with_its_age_until_answers_are_quick_again() {
    let quiet = QuietHost::start();
    let agent = Agent::start_logging_by(quiet.command(), "");
    let mut pool = known(&agent);
    assert_eq!(age_s(&agent), None);
    // Slow, but with so many workers that nothing waits for one.
    pool.workers = usize::MAX;
    pool.waits = [STEPS_A_SECOND / 5; 3];
    pool.run_until("an incident", 30, || age_s(&agent).is_some());
    let first = age_s(&agent);
    pool.run_until("one that grows older", 30, || {
        age_s(&agent) >= first.map(|first_s| first_s + 1.0)
    });
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let metric = "tidegate_scope_incident_seconds{scope=\"host\"} ";
    let told = metrics.lines().find_map(|line| line.strip_prefix(metric));
    let told: f64 = told.and_then(|told| told.parse().ok()).expect(metric);
    assert!(told >= 1.0, "{told}");
    let text = status_text(&agent);
    assert!(text.contains("host: an incident for "), "{text}");
    pool.waits = [0; 3];
    pool.run_until("its end", 30, || age_s(&agent).is_none());
}

fn age_s(agent: &Agent) -> Option<f64> {
    host(agent)["course"]["incident_s"].as_f64()
}

fn status_text(agent: &Agent) -> String {
    let status = Program::Tidegate
        .command()
        .args(["status", "--runtime-dir"])
        .arg(agent.runtime_dir())
        .output()
        .expect("the command starts");
    String::from_utf8_lossy(&status.stdout).into_owned()
}
