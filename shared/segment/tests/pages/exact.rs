//! Every kind of rule that counts admits exactly what it allows, from eight threads at one instant.

use std::num::NonZeroU64;
use std::sync::Barrier;
use std::thread;

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Mode, Outcome};
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, ResourceRecord,
    RuleKind, Slot, Subject,
};
use tidegate_segment::clock::Clock;
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Pass, Request, Step};
use tidegate_segment::lane::Lane;

use crate::fixture::{Fixture, SECOND};

const THREADS: usize = 8;
const TRIES: usize = 50;
const MS: u64 = 1_000_000;

/// One instant.
#[derive(Clone, Copy)]
struct At(u64);

impl Clock for At {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

pub(crate) fn rule(kind: RuleKind) -> BoardRule {
    BoardRule {
        number: 0,
        mode: Mode::Enforce,
        state: 0,
        quirks: Quirks::None,
        kind,
    }
}

pub(crate) fn flow(limit: FlowLimit) -> BoardRule {
    rule(RuleKind::Flow(FlowRule {
        origin: OriginTest::Any,
        subject: Subject::Direct,
        limit,
    }))
}

pub(crate) fn param(limit: ParamLimit, count: u32) -> BoardRule {
    rule(RuleKind::Param(ParamRule {
        index: 0,
        limit,
        count,
        items: PoolSpan::default(),
        sets: PoolSpan {
            start: 0,
            length: 2,
        },
    }))
}

pub(crate) fn breaker() -> BoardRule {
    rule(RuleKind::Degrade {
        breaker: Breaker {
            trip: BreakerTrip::ErrorCount(0.0),
            min_requests: 1,
            recovery_ns: SECOND,
            lease_ns: SECOND,
            quirks: Quirks::None,
        },
        interval_ns: NonZeroU64::new(SECOND).unwrap(),
    })
}

struct Crowded {
    gate: Gate,
    slot: Slot,
}

impl Crowded {
    fn new(rule: BoardRule) -> Self {
        let mut fixture = Fixture::new(LossMode::Last);
        let record = ResourceRecord {
            needs: Needs(Needs::RULES | Needs::COUNTED),
            ..ResourceRecord::default()
        };
        let slot = fixture.writers.rules.add("r", &record, &[rule]).unwrap();
        let gate = fixture.gate(1, 0);
        Self { gate, slot }
    }

    /// Lets eight threads ask at one instant; gives the passes and the waits.
    fn ask(&self, at_ns: u64) -> (Vec<Pass>, Vec<u64>) {
        let barrier = Barrier::new(THREADS);
        let answers = thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| {
                scope.spawn(|| {
                    barrier.wait();
                    let asked = std::iter::repeat_with(|| self.ask_once(at_ns));
                    asked.take(TRIES).collect::<Vec<_>>()
                })
            });
            let joined = threads.map(|thread| thread.join().unwrap());
            joined.into_iter().flatten().collect::<Vec<_>>()
        });
        let (mut passes, mut waits) = (Vec::new(), Vec::new());
        for answer in answers.into_iter().flatten() {
            match answer {
                Ok(pass) => passes.push(pass),
                Err(wait_ns) => waits.push(wait_ns),
            }
        }
        waits.sort_unstable();
        (passes, waits)
    }

    fn ask_once(&self, at_ns: u64) -> Option<Result<Pass, u64>> {
        let request = Request {
            args: &[Arg::One(7)],
            ..Request::default()
        };
        let clock = At(at_ns);
        match self.gate.enter(&clock, Lane::SHARED, self.slot, request) {
            Step::Done(GateVerdict::Admitted(pass)) => Some(Ok(pass)),
            Step::Done(GateVerdict::Refused(_)) => None,
            Step::Done(GateVerdict::Stale) => panic!("the seat is there"),
            Step::Wait(waiting) => Some(Err(waiting.until_ns() - at_ns)),
        }
    }
}

#[test]
fn a_qps_rule_admits_its_count() {
    let crowded = Crowded::new(flow(FlowLimit::Qps(20)));
    assert_eq!(crowded.ask(1_000 * SECOND).0.len(), 20);
    assert_eq!(crowded.ask(1_000 * SECOND + 999 * MS).0.len(), 0);
    assert_eq!(crowded.ask(1_001 * SECOND).0.len(), 20);
}

#[test]
fn windows_of_other_lengths_and_strict_ones_admit_their_count() {
    let window_ns = 10 * SECOND;
    for limit in [
        FlowLimit::Window {
            limit: 20,
            window_ns,
        },
        FlowLimit::Strict {
            limit: 20,
            window_ns,
        },
    ] {
        let crowded = Crowded::new(flow(limit));
        assert_eq!(crowded.ask(1_000 * SECOND).0.len(), 20, "{limit:?}");
        assert_eq!(crowded.ask(1_004 * SECOND).0.len(), 0, "{limit:?}");
    }
}

#[test]
fn a_concurrency_rule_is_never_exceeded_and_fills_up() {
    let crowded = Crowded::new(flow(FlowLimit::Concurrency(7)));
    let (mut passes, _) = crowded.ask(1_000 * SECOND);
    assert!(passes.len() <= 7, "{} are inside", passes.len());
    passes.extend(crowded.ask(1_000 * SECOND).0);
    while let Some(Ok(pass)) = crowded.ask_once(1_000 * SECOND) {
        passes.push(pass);
    }
    assert_eq!(passes.len(), 7);
    for pass in passes {
        let clock = At(1_000 * SECOND);
        crowded.gate.exit(&clock, Lane::SHARED, pass, Outcome::Ok);
    }
    assert!(matches!(crowded.ask_once(1_000 * SECOND), Some(Ok(_))));
}

#[test]
fn a_pacing_rule_gives_each_turn_once() {
    let pace = FlowLimit::Pace {
        count: 10.0,
        max_wait_ns: SECOND,
    };
    let crowded = Crowded::new(flow(pace));
    let (passes, waits) = crowded.ask(1_000 * SECOND);
    assert_eq!(passes.len(), 1);
    let turns: Vec<u64> = (1..=10).map(|turn| turn * 100 * MS).collect();
    assert_eq!(waits, turns);
}

#[test]
fn a_value_gets_its_tokens_and_its_calls_at_once() {
    let bucket = ParamLimit::Bucket {
        burst: 3,
        duration_s: 1,
    };
    let crowded = Crowded::new(param(bucket, 20));
    assert_eq!(crowded.ask(1_000 * SECOND).0.len(), 23);

    let crowded = Crowded::new(param(ParamLimit::Concurrency, 5));
    let (mut passes, _) = crowded.ask(1_000 * SECOND);
    assert!(passes.len() <= 5, "{} are inside", passes.len());
    while let Some(Ok(pass)) = crowded.ask_once(1_000 * SECOND) {
        passes.push(pass);
    }
    assert_eq!(passes.len(), 5);
}

#[test]
fn a_breaker_lets_one_probe_through() {
    let crowded = Crowded::new(breaker());
    let clock = At(1_000 * SECOND);
    let Some(Ok(pass)) = crowded.ask_once(clock.0) else {
        panic!("a closed breaker admits");
    };
    crowded
        .gate
        .exit(&clock, Lane::SHARED, pass, Outcome::Error);
    assert_eq!(crowded.ask(clock.0).0.len(), 0, "open");
    let probes = crowded.ask(1_001 * SECOND).0;
    assert_eq!(probes.len(), 1, "half-open");
    let clock = At(1_001 * SECOND);
    for probe in probes {
        crowded.gate.exit(&clock, Lane::SHARED, probe, Outcome::Ok);
    }
    assert_eq!(crowded.ask(clock.0).0.len(), THREADS * TRIES, "closed");
}
