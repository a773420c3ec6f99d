//! Requests that wait while the rules change.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, RefusalKind};
use tidegate_segment::board::{BoardRule, CompiledRules, FlowLimit, ParamLimit, ResourceRecord};
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Request, Step, WaitingDecision};
use tidegate_segment::lane::Lane;

use crate::exact::{flow, param};
use crate::fixture::Fixture;

const ARGS: [Arg<'static>; 1] = [Arg::One(7)];

/// A pace for each value, then a limit on requests in flight.
fn rules(inflight: u32) -> [BoardRule; 2] {
    let pace = ParamLimit::Pace {
        duration_s: 1,
        max_wait_ms: 1_000,
    };
    let limit = flow(FlowLimit::Concurrency(inflight));
    [param(pace, 10), BoardRule { state: 1, ..limit }]
}

fn record(rules: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::RULES),
        rules,
        ..ResourceRecord::default()
    }
}

/// The second of two requests: it waits for its value's turn.
fn waiting(fixture: &mut Fixture) -> (Gate, WaitingDecision<'static>) {
    let added = fixture.writers.rules.add("r", &record(2), &rules(9));
    let (slot, gate) = (added.unwrap(), fixture.gate(1, 0));
    let request = Request {
        args: &ARGS,
        ..Request::default()
    };
    let ask = || gate.enter(&fixture.clock, Lane::SHARED, slot, request);
    assert!(matches!(ask(), Step::Done(GateVerdict::Admitted(_))));
    let Step::Wait(waiting) = ask() else {
        panic!("the turn of a value is a tenth of a second");
    };
    (gate, waiting)
}

fn publish(fixture: &mut Fixture, rules: &[BoardRule]) {
    let set = CompiledRules {
        rules,
        ..CompiledRules::default()
    };
    let count = u32::try_from(rules.len()).unwrap();
    fixture
        .writers
        .rules
        .publish(set, |_slot| record(count))
        .unwrap();
}

fn resumed(fixture: &Fixture, gate: &Gate, waiting: &WaitingDecision<'_>) -> GateVerdict {
    fixture
        .clock
        .advance(waiting.until_ns() - 1_000 * crate::fixture::SECOND);
    match gate.resume(&fixture.clock, Lane::SHARED, waiting) {
        Step::Done(verdict) => verdict,
        Step::Wait(again) => panic!("a value waits once: {again:?}"),
    }
}

#[test]
fn a_request_that_waited_is_held_to_the_later_kinds_of_the_set_in_force_then() {
    let mut fixture = Fixture::new(LossMode::Last);
    let (gate, waiting) = waiting(&mut fixture);
    publish(&mut fixture, &rules(1));
    let verdict = resumed(&fixture, &gate, &waiting);
    let GateVerdict::Refused(refusal) = verdict else {
        panic!("one is inside already: {verdict:?}");
    };
    assert_eq!(refusal.kind, RefusalKind::Flow);
}

#[test]
fn a_request_that_waited_goes_on_where_its_rules_are_gone() {
    let mut fixture = Fixture::new(LossMode::Last);
    let (gate, waiting) = waiting(&mut fixture);
    publish(&mut fixture, &[]);
    let verdict = resumed(&fixture, &gate, &waiting);
    assert!(matches!(verdict, GateVerdict::Admitted(_)), "{verdict:?}");
}
