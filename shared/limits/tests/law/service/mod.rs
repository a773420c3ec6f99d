//! A simulated service under the law: requests arrive at random, share the CPUs (processor sharing),
//! may wait for others in the middle, and are admitted or refused as a gate does it from the words
//! of the board. Time is in seconds, CPU work in CPU seconds.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a simulation that contradicts itself must fail loudly"
)]

mod door;
mod machine;
pub(crate) mod random;

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Class, ScopeState};
use tidegate_limits::law::{Law, LawSettings, PublishedLimits, settings};

use machine::Machine;

pub(crate) const TICK_S: f64 = 0.1;

/// What the service is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    pub(crate) cpus: f64,
    /// Threads that take requests; without a pool each request runs at once.
    pub(crate) workers: Option<usize>,
    /// Mean CPU work of a request.
    pub(crate) work_s: f64,
    pub(crate) constant_work: bool,
    /// Mean wait for others in the middle of a request.
    pub(crate) wait_s: f64,
    /// CPU work of a decision, as a share of a request's.
    pub(crate) decision_cost: f64,
    /// An answer later than this is worth nothing.
    pub(crate) deadline_s: f64,
    /// What the agent reads for a CPU share, as a factor of the truth.
    pub(crate) cpu_reading: f64,
    /// Whether the agent can read the accept queue and the run queue.
    pub(crate) queues_readable: bool,
    /// Who asks; each request is of one of these callers.
    pub(crate) callers: &'static [Caller],
}

/// A kind of callers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) class: Class,
    /// Number of the service that they ask, all of them on the same CPUs; under [`SERVICES`].
    pub(crate) service: usize,
    /// Share of the requests.
    pub(crate) share: f64,
    /// Whether each of its requests has an origin.
    pub(crate) keyed: bool,
}

/// Services at most.
pub(crate) const SERVICES: usize = 2;

const ANYBODY: &[Caller] = &[Caller {
    class: Class::Normal,
    service: 0,
    share: 1.0,
    keyed: false,
}];

impl Service {
    /// Two CPUs, 5 ms of random work, no pool: 398 requests a second.
    pub(crate) const PLAIN: Self = Self {
        cpus: 2.0,
        workers: None,
        work_s: 0.005,
        constant_work: false,
        wait_s: 0.0,
        decision_cost: 0.005,
        deadline_s: 0.25,
        cpu_reading: 1.0,
        queues_readable: true,
        callers: ANYBODY,
    };

    /// Requests per second that it can do.
    pub(crate) fn capacity_qps(&self) -> f64 {
        let work_s = self.work_s * (1.0 + self.decision_cost);
        let by_cpu = self.cpus / work_s;
        self.workers.map_or(by_cpu, |workers| {
            by_cpu.min(f64::from(u32::try_from(workers).unwrap()) / (work_s + self.wait_s))
        })
    }

    /// The best goodput without any control, over the loads around the capacity.
    pub(crate) fn peak_qps(&self) -> f64 {
        let uncontrolled = LawSettings {
            entry: settings::EntrySettings {
                least_qps: f64::INFINITY,
                ..settings::EntrySettings::default()
            },
            marks: settings::OperatorThresholds {
                cpu: None,
                load: None,
                ..settings::OperatorThresholds::default()
            },
            ..LawSettings::default()
        };
        let at = |load: f64| {
            let outcome = run_with(*self, &[Phase::new(0.0, load)], 30.0, 100, &uncontrolled);
            outcome.goodput_qps(3.0, 29.0, self.deadline_s)
        };
        [0.85, 0.9, 0.95, 1.0]
            .map(at)
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// The most that any control can reach at this load: refusing costs CPU too.
    pub(crate) fn bound(&self, load: f64) -> f64 {
        let cost = self.decision_cost / (1.0 + self.decision_cost);
        ((1.0 - load * cost) / (1.0 - cost)).min(1.0)
    }
}

/// From `at_s` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phase {
    pub(crate) at_s: f64,
    /// Offered rate as a share of the capacity.
    pub(crate) load: f64,
    /// Threads of others that never stop computing.
    pub(crate) neighbours: f64,
    /// Factor on the wait for others.
    pub(crate) slower: f64,
}

impl Phase {
    pub(crate) fn new(at_s: f64, load: f64) -> Self {
        Self {
            at_s,
            load,
            neighbours: 0.0,
            slower: 1.0,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    Answered {
        after_s: f64,
    },
    Refused,
    /// Still there when the simulation ended, or turned away by a full accept queue.
    Lost,
}

/// What happened.
pub(crate) struct Outcome {
    /// Arrival time and fate of each request.
    pub(crate) requests: Vec<(f64, Fate)>,
    /// Which caller sent each request.
    pub(crate) callers: Vec<usize>,
    /// Time of each refusal.
    pub(crate) refusals: Vec<f64>,
    /// Changes of the published state.
    pub(crate) changes: Vec<(f64, ScopeState)>,
    /// What the law says at the end.
    pub(crate) published: PublishedLimits,
}

impl Outcome {
    /// Requests per second that arrived in this span and were answered in time.
    pub(crate) fn goodput_qps(&self, from_s: f64, to_s: f64, deadline_s: f64) -> f64 {
        goodput_qps(&self.requests, from_s, to_s, deadline_s)
    }

    /// Refusals in this span.
    pub(crate) fn refused(&self, from_s: f64, to_s: f64) -> usize {
        let within = |at: &&f64| (from_s..to_s).contains(*at);
        self.refusals.iter().filter(within).count()
    }

    /// Share of a caller's requests that were answered, of those that arrived in this span.
    pub(crate) fn answered(&self, caller: usize, from_s: f64, to_s: f64) -> f64 {
        let of_caller = self
            .requests
            .iter()
            .zip(&self.callers)
            .filter(|((at_s, _fate), from)| **from == caller && (from_s..to_s).contains(at_s));
        let (mut all, mut good) = (0_u32, 0_u32);
        for ((_at_s, fate), _from) in of_caller {
            all += 1;
            good += u32::from(matches!(fate, Fate::Answered { .. }));
        }
        f64::from(good) / f64::from(all.max(1))
    }

    /// Seconds from `from_s` to the first refusal after it.
    pub(crate) fn first_refusal_after(&self, from_s: f64) -> Option<f64> {
        let first = self.refusals.iter().find(|at| **at >= from_s)?;
        Some(first - from_s)
    }
}

fn goodput_qps(requests: &[(f64, Fate)], from_s: f64, to_s: f64, deadline_s: f64) -> f64 {
    let in_time = |(arrival, fate): &&(f64, Fate)| {
        (from_s..to_s).contains(arrival)
            && matches!(fate, Fate::Answered { after_s } if *after_s <= deadline_s)
    };
    let good = requests.iter().filter(in_time).count();
    f64::from(u32::try_from(good).unwrap()) / (to_s - from_s)
}

/// Runs the service at one load under a limit on what is in flight that nothing adapts, and tells its
/// goodput from `from_s` to half a second before the end.
pub(crate) fn fixed_goodput_qps(
    service: Service,
    load: f64,
    limit: u32,
    from_s: f64,
    end_s: f64,
) -> f64 {
    let word = ScopeWord {
        state: ScopeState::Overload,
        entry: limit,
        tight: limit,
        ..ScopeWord::OPEN
    };
    let mut machine = Machine::new(service, 7);
    machine.enter(&Phase::new(0.0, load));
    let mut at_s = 0.0;
    while at_s < end_s {
        at_s += TICK_S;
        machine.advance(at_s, word);
    }
    goodput_qps(&machine.requests, from_s, end_s - 0.5, service.deadline_s)
}

/// Runs the service through the phases until `end_s`.
pub(crate) fn run(service: Service, phases: &[Phase], end_s: f64, seed: u64) -> Outcome {
    run_with(service, phases, end_s, seed, &LawSettings::default())
}

/// The same with other settings of the law.
pub(crate) fn run_with(
    service: Service,
    phases: &[Phase],
    end_s: f64,
    seed: u64,
    settings: &LawSettings,
) -> Outcome {
    let mut law = Box::<Law>::default();
    let mut machine = Machine::new(service, seed);
    let mut changes = Vec::new();
    let mut phases = phases.iter().peekable();
    let mut at_s = 0.0;
    while at_s < end_s {
        while let Some(phase) = phases.next_if(|phase| phase.at_s <= at_s + 1e-9) {
            machine.enter(phase);
        }
        at_s += TICK_S;
        let sample = machine.advance(at_s, law.published().word());
        let before = law.published().state;
        let published = law.step(&sample, settings);
        machine.door.tick(&published, at_s);
        let after = published.state;
        if after != before {
            changes.push((at_s, after));
        }
    }
    Outcome {
        requests: machine.requests,
        callers: machine.callers,
        refusals: machine.refusals,
        changes,
        published: *law.published(),
    }
}
