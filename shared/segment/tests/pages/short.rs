//! Resources with a short record: they decide as the walk through the same rules does.

use std::num::NonZeroU64;

use proptest::prelude::*;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Mode, Outcome};
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Slot, Subject,
};
use tidegate_segment::gate::{Gate, GateVerdict, Pass, Refusal, Request, Step};
use tidegate_segment::lane::Lane;

use crate::fixture::{Fixture, SECOND};

const MS: u64 = 1_000_000;

/// What a caller does next.
#[derive(Debug, Clone, Copy)]
enum Act {
    Wait(u64),
    Enter { count: u32, lane: u32 },
    Exit { which: usize, outcome: Outcome },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let outcome = prop_oneof![
        Just(Outcome::Ok),
        Just(Outcome::Error),
        Just(Outcome::Ignore)
    ];
    let act = prop_oneof![
        1 => (1..700_u64).prop_map(|ms| Act::Wait(ms * MS)),
        4 => (1..3_u32, 0..3_u32).prop_map(|(count, lane)| Act::Enter { count, lane }),
        4 => (0..4_usize, outcome).prop_map(|(which, outcome)| Act::Exit { which, outcome }),
    ];
    prop::collection::vec(act, 1..120)
}

fn trip() -> impl Strategy<Value = BreakerTrip> {
    let slow = (0..400_u64, 0.0..=1.0_f64).prop_map(|(ms, ratio)| BreakerTrip::SlowRatio {
        max_rt_ns: ms * MS,
        ratio,
    });
    let ratio = (0.0..=1.0_f64).prop_map(BreakerTrip::ErrorRatio);
    let count = (0..4_u8).prop_map(|count| BreakerTrip::ErrorCount(f64::from(count)));
    prop_oneof![slow, ratio, count]
}

fn rules(limit: Option<u32>, trip: BreakerTrip, first_line: u32) -> Vec<BoardRule> {
    let flow = limit.map(|limit| {
        RuleKind::Flow(FlowRule {
            origin: OriginTest::Any,
            subject: Subject::Direct,
            limit: FlowLimit::Qps(limit),
        })
    });
    let degrade = RuleKind::Degrade {
        breaker: Breaker {
            trip,
            min_requests: 2,
            recovery_ns: SECOND,
            lease_ns: SECOND,
            quirks: Quirks::None,
        },
        interval_ns: NonZeroU64::new(SECOND).unwrap(),
    };
    let kinds = flow.into_iter().chain([degrade]);
    let rule = |(place, kind): (u32, RuleKind)| BoardRule {
        number: 5 + place,
        mode: Mode::Enforce,
        state: first_line + place,
        quirks: Quirks::None,
        kind,
    };
    (0..).zip(kinds).map(rule).collect()
}

struct Caller {
    gate: Gate,
    slot: Slot,
    first_line: u32,
    held: Vec<Pass>,
}

impl Caller {
    fn enter(&mut self, fixture: &Fixture, count: u32, lane: u32) -> Option<Refusal> {
        let request = Request {
            count,
            ..Request::default()
        };
        let lane = Lane::numbered(lane);
        match self.gate.enter(&fixture.clock, lane, self.slot, request) {
            Step::Done(GateVerdict::Admitted(pass)) => {
                self.held.push(pass);
                None
            }
            Step::Done(GateVerdict::Refused(refusal)) => Some(refusal),
            Step::Done(GateVerdict::Stale) | Step::Wait(_) => panic!("nothing waits here"),
        }
    }

    fn exit(&mut self, fixture: &Fixture, which: usize, outcome: Outcome) {
        if which < self.held.len() {
            let pass = self.held.remove(which);
            let lane = Lane::numbered(1);
            self.gate.exit(&fixture.clock, lane, pass, outcome);
        }
    }

    /// Counts of the resource, and what its rules refused.
    fn counts(&self, fixture: &Fixture) -> impl PartialEq + std::fmt::Debug {
        let refused = [0, 1].map(|place| {
            let state = fixture.ledger.state(self.first_line + place).unwrap();
            state.refused_and_observed()
        });
        (
            fixture.ledger.node_counts(&fixture.board, self.slot),
            refused,
        )
    }
}

proptest! {
    #[test]
    fn a_short_record_decides_as_the_walk_does(
        limit in prop::option::of(0..9_u32), trip in trip(), acts in acts(),
    ) {
        let mut fixture = Fixture::new(LossMode::Open);
        let counted = if limit.is_some() { Needs::COUNTED } else { 0 };
        // Passes by whole seconds keep a record from being short, and change no verdict.
        let mut callers = [(0, 0), (Needs::SECONDS, 4)].map(|(more, first_line)| {
            let record = ResourceRecord {
                needs: Needs(Needs::RULES | counted | more),
                ..ResourceRecord::default()
            };
            let name = format!("r{first_line}");
            let rules = rules(limit, trip, first_line);
            let slot = fixture.writers.rules.add(&name, &record, &rules).unwrap();
            (slot, first_line)
        });
        let gate = fixture.gate(1, 0);
        let mut callers = callers.each_mut().map(|(slot, first_line)| Caller {
            gate,
            slot: *slot,
            first_line: *first_line,
            held: Vec::new(),
        });
        for act in acts {
            match act {
                Act::Wait(ns) => fixture.clock.advance(ns),
                Act::Enter { count, lane } => {
                    let [short, long] = callers.each_mut().map(|caller| caller.enter(&fixture, count, lane));
                    prop_assert_eq!(short, long);
                }
                Act::Exit { which, outcome } => callers.iter_mut().for_each(|caller| caller.exit(&fixture, which, outcome)),
            }
            fixture.writers.tick.beat(tidegate_segment::clock::Clock::now_ns(&fixture.clock));
            let [short, long] = callers.each_ref().map(|caller| caller.counts(&fixture));
            prop_assert_eq!(short, long);
        }
    }
}
