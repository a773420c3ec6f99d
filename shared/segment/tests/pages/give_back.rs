//! Slots that are taken back and given to others.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Mode, Outcome};
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Slot, Subject,
};
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{
    Gate, GateVerdict, Pass, Request, RequestName, Step, WaitingDecision,
};
use tidegate_segment::lane::Lane;

use super::fixture::{Fixture, SECOND, Scripted};

const LANE: Lane = Lane::numbered(1);
const CALLER: u64 = 7;

const COUNTED: ResourceRecord = ResourceRecord {
    needs: Needs(Needs::COUNTED),
    generation: 0,
    rules_first: 0,
    rules: 0,
    qps_limit: 0,
    qps_rule: 0,
    concurrency_limit: 0,
    concurrency_rule: 0,
    observed_qps_limit: 0,
    observed_qps_rule: 0,
    observed_concurrency_limit: 0,
    observed_concurrency_rule: 0,
};

fn rule(number: u32, origin: OriginTest, limit: FlowLimit) -> BoardRule {
    BoardRule {
        number,
        mode: Mode::Enforce,
        state: number,
        quirks: Quirks::None,
        kind: RuleKind::Flow(FlowRule {
            origin,
            subject: Subject::Direct,
            limit,
        }),
    }
}

/// A resource with rules, and the node of one of its origins.
fn with_part(pages: &mut Fixture, rules: &[BoardRule]) -> (Slot, Slot) {
    let record = ResourceRecord {
        needs: Needs(Needs::RULES | Needs::COUNTED | Needs::ORIGINS),
        ..ResourceRecord::default()
    };
    let own = pages.writers.rules.add("r", &record, rules).unwrap();
    let part = pages
        .writers
        .rules
        .add("r\u{1f}shop", &COUNTED, &[])
        .unwrap();
    (own, part)
}

fn step(gate: &Gate, clock: &Scripted, slot: Slot, part: Slot) -> Step<'static> {
    let request = Request {
        origin: RequestName {
            hash: CALLER,
            node: Some(part),
        },
        ..Request::default()
    };
    gate.enter(clock, LANE, slot, request)
}

fn admitted(step: &Step<'_>) -> Pass {
    match *step {
        Step::Done(GateVerdict::Admitted(pass)) => pass,
        Step::Done(_) | Step::Wait(_) => panic!("{step:?}"),
    }
}

fn waiting(step: &Step<'static>) -> WaitingDecision<'static> {
    match *step {
        Step::Wait(waiting) => waiting,
        Step::Done(other) => panic!("{other:?}"),
    }
}

fn passed(pages: &Fixture, slot: Slot) -> u32 {
    let node = pages.ledger.node(slot.index).unwrap();
    node.window(pages.clock.now_ns()).sum()
}

/// Takes a slot back, clears it and gives it to another name.
fn give_on(pages: &mut Fixture, slot: Slot, name: &str, record: &ResourceRecord) -> Slot {
    let closed = pages.writers.rules.close(slot);
    pages
        .ledger
        .clear_node(slot.index, pages.board.seats_used());
    pages
        .writers
        .rules
        .reopen(closed, name, record, &[])
        .unwrap();
    closed
}

#[test]
fn a_name_that_lost_its_slot_asks_anew_and_another_has_the_slot_clean() {
    let mut pages = Fixture::new(LossMode::Open);
    let slot = pages.resource("a-first-name", COUNTED);
    let gate = pages.gate(1, 0);
    let enter = |slot| gate.enter(&pages.clock, LANE, slot, Request::default());
    let held = admitted(&enter(slot));
    let closed = pages.writers.rules.close(slot);
    assert_eq!((closed.index, closed.generation), (slot.index, 2));
    assert!(matches!(enter(slot), Step::Done(GateVerdict::Stale)));
    assert_eq!(pages.board.find("a-first-name"), None);
    pages
        .ledger
        .clear_node(slot.index, pages.board.seats_used());
    // A longer name: the text of the first has no room for it.
    let name = "a-second-name-that-is-longer";
    pages
        .writers
        .rules
        .reopen(closed, name, &COUNTED, &[])
        .unwrap();
    assert_eq!(pages.board.find(name), Some(closed));
    assert_eq!((pages.inflight(closed), passed(&pages, closed)), (0, 0));
    let next = admitted(&enter(closed));
    gate.exit(&pages.clock, LANE, held, Outcome::Ok);
    assert_eq!(pages.inflight(closed), 1, "the end of a call of the first");
    gate.exit(&pages.clock, LANE, next, Outcome::Ok);
    assert_eq!(pages.inflight(closed), 0);
    assert_eq!(pages.ledger.scope_inflight(&pages.board, 0), 0);
}

#[test]
fn a_rule_set_that_is_published_later_knows_the_slot_by_its_new_generation() {
    let mut pages = Fixture::new(LossMode::Open);
    let slot = pages.resource("a", COUNTED);
    let next = give_on(&mut pages, slot, "b", &COUNTED);
    let gate = pages.gate(1, 0);
    for _set in 0..2 {
        let set = tidegate_segment::board::CompiledRules::default();
        pages.writers.rules.publish(set, |_slot| COUNTED).unwrap();
        let enter = |slot| gate.enter(&pages.clock, LANE, slot, Request::default());
        assert!(matches!(enter(slot), Step::Done(GateVerdict::Stale)));
        let _in_flight = admitted(&enter(next));
    }
}

#[test]
fn names_take_the_place_of_those_that_went() {
    let mut pages = Fixture::new(LossMode::Open);
    let mut slot = pages.resource("name-0", COUNTED);
    // The page has room for eight long names and not for a thousand.
    for number in 1..1000 {
        let name = format!("name-{number}-{}", "x".repeat(200));
        slot = give_on(&mut pages, slot, &name, &COUNTED);
        assert_eq!(pages.board.find(&name), Some(slot));
    }
    assert_eq!(slot.generation, 1000);
}

#[test]
fn a_request_that_knows_a_node_that_went_is_held_to_the_limit_by_the_resources_own() {
    let mut pages = Fixture::new(LossMode::Open);
    let each = rule(0, OriginTest::Is(CALLER), FlowLimit::Concurrency(1));
    let (own, part) = with_part(&mut pages, &[each]);
    let gate = pages.gate(1, 0);
    let first = admitted(&step(&gate, &pages.clock, own, part));
    assert_eq!((pages.inflight(own), pages.inflight(part)), (1, 1));
    let stranger = give_on(&mut pages, part, "stranger", &COUNTED);
    assert_eq!(pages.inflight(stranger), 0);
    // The own node has one in flight already.
    assert!(matches!(
        step(&gate, &pages.clock, own, part),
        Step::Done(GateVerdict::Refused(_))
    ));
    gate.exit(&pages.clock, LANE, first, Outcome::Ok);
    let second = admitted(&step(&gate, &pages.clock, own, part));
    assert_eq!((pages.inflight(own), pages.inflight(stranger)), (1, 0));
    gate.exit(&pages.clock, LANE, second, Outcome::Ok);
    assert_eq!((pages.inflight(own), pages.inflight(stranger)), (0, 0));
    assert_eq!(passed(&pages, stranger), 0);
}

#[test]
fn a_request_that_waits_while_its_node_goes_is_held_to_the_limit_by_the_resources_own() {
    let mut pages = Fixture::new(LossMode::Open);
    let pace = FlowLimit::Pace {
        count: 1.0,
        max_wait_ns: 60 * SECOND,
    };
    let rules = [
        rule(0, OriginTest::Is(CALLER), FlowLimit::Concurrency(1)),
        rule(1, OriginTest::Any, pace),
    ];
    let (own, part) = with_part(&mut pages, &rules);
    let gate = pages.gate(1, 0);
    let first = admitted(&step(&gate, &pages.clock, own, part));
    gate.exit(&pages.clock, LANE, first, Outcome::Ok);
    let [second, third] = [(); 2].map(|()| waiting(&step(&gate, &pages.clock, own, part)));
    let stranger = give_on(&mut pages, part, "stranger", &COUNTED);
    pages.clock.advance(2 * SECOND);
    let second = admitted(&gate.resume(&pages.clock, LANE, &second));
    assert!(matches!(
        gate.resume(&pages.clock, LANE, &third),
        Step::Done(GateVerdict::Refused(_))
    ));
    assert_eq!((pages.inflight(own), pages.inflight(stranger)), (1, 0));
    gate.exit(&pages.clock, LANE, second, Outcome::Ok);
    assert_eq!((pages.inflight(own), passed(&pages, stranger)), (0, 0));
    let counts = pages.ledger.node_counts(&pages.board, stranger);
    assert_eq!(counts, tidegate_segment::ledger::NodeCounts::default());
}
