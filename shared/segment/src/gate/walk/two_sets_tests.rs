//! A decision in the middle of which two rule sets are published.
//!
//! There are two copies, so the second publish writes over the set that the decision began with. No test can hold
//! a decision up from outside; these hand it the view that it took before. Loom does the same with what a decision
//! reads of such a view (`loom_tests/publish.rs`); a model of a whole decision under two publishes had not ended after a
//! minute and a half.

use tidegate_abi::decision::LossMode;
use tidegate_abi::geometry::Geometry;
use tidegate_limits::quirks::Quirks;

use super::*;
use crate::board::{
    self, Board, BoardSettings, CompiledRules, FlowLimit, FlowRule, OriginTest, Process, Subject,
    Writers,
};
use crate::gate::ThreadCounters;
use crate::ledger::Ledger;
use crate::page::Page;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1_000_000_000_000
    }
}

/// A set of two rules: one lets nobody in, and the other everybody.
fn set(closed_first: bool) -> [BoardRule; 2] {
    let rule = |number: u32, limit: u32| BoardRule {
        number,
        mode: Mode::Enforce,
        state: number,
        quirks: Quirks::None,
        kind: RuleKind::Flow(FlowRule {
            origin: OriginTest::Any,
            subject: Subject::Direct,
            limit: FlowLimit::Concurrency(limit),
        }),
    };
    if closed_first {
        [rule(0, 0), rule(1, 1_000)]
    } else {
        [rule(0, 1_000), rule(1, 0)]
    }
}

const RECORD: ResourceRecord = ResourceRecord {
    needs: Needs(Needs::RULES | Needs::COUNTED),
    generation: 1,
    rules_first: 0,
    rules: 2,
    qps_limit: 0,
    qps_rule: 0,
    concurrency_limit: 0,
    concurrency_rule: 0,
    observed_qps_limit: 0,
    observed_qps_rule: 0,
    observed_concurrency_limit: 0,
    observed_concurrency_rule: 0,
};

struct Pages {
    board: Board,
    ledger: Ledger,
    writers: Writers,
    slot: Slot,
    gate: Gate,
}

fn pages(closed_first: bool) -> Pages {
    let geometry = Geometry::new(2, 2, 1, 1).unwrap();
    let settings = BoardSettings {
        generation: 1,
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let page = Page::private(geometry.board().words);
    let (board, mut writers) = board::create(page, geometry, settings).unwrap();
    let ledger = Ledger::create(Page::private(geometry.ledger().words), geometry).unwrap();
    let slot = writers.rules.add("r", &RECORD, &set(closed_first)).unwrap();
    let process = Process {
        pid: 1,
        start: 0,
        uid: 0,
        scope: 0,
    };
    let generation = writers.seats.seat(1, process).unwrap();
    Pages {
        board,
        ledger,
        writers,
        slot,
        gate: Gate::new(board, ledger, 1, generation),
    }
}

impl Pages {
    fn publish(&mut self, closed_first: bool) {
        let set = CompiledRules {
            rules: &set(closed_first),
            ..CompiledRules::default()
        };
        self.writers.rules.publish(set, |_slot| RECORD).unwrap();
    }

    fn contended(&self) -> u64 {
        self.ledger.seat_faults(1).1
    }

    /// Goes on with a decision that took its view before, from one of its rules on.
    fn go_on(&self, view: &View, record: &ResourceRecord, from: u32) -> Answer {
        let request = Request {
            direction: Direction::Out,
            ..Request::default()
        };
        let books: ThreadCounters = self.gate.books(Lane::SHARED, self.slot).unwrap();
        let ask = Ask {
            clock: &Still,
            lane: Lane::SHARED,
            now_ns: Still.now_ns(),
            slot: self.slot,
            request: &request,
            books,
        };
        let mut walk = Walk::begin(self.slot, request, ask.now_ns, view.generation());
        walk.next = from;
        self.gate.look(&ask, view, record, &mut walk)
    }
}

#[test]
fn one_publish_in_the_middle_leaves_a_decision_the_set_that_it_began_with() {
    let mut pages = pages(false);
    let view = pages.board.view();
    let record = view.record(pages.slot.index).unwrap();
    pages.publish(true);
    // The first rule was asked before. The new set has the closed one there.
    let answer = pages.go_on(&view, &record, 1);
    let Answer::Refuse(refusal) = answer else {
        panic!("the second rule of its set lets nobody in: {answer:?}");
    };
    assert_eq!(refusal.rule, 1);
    assert_eq!(pages.contended(), 0);
}

#[test]
fn two_publishes_in_the_middle_end_a_decision_by_what_was_asked_and_are_counted() {
    for asked in [0, 1] {
        let mut pages = pages(false);
        let view = pages.board.view();
        let record = view.record(pages.slot.index).unwrap();
        pages.publish(true);
        pages.publish(true);
        // Its copy has the third set now, whose rule at this place is another: none of it is asked.
        let answer = pages.go_on(&view, &record, asked);
        assert!(matches!(answer, Answer::Go), "{asked}: {answer:?}");
        assert_eq!(pages.contended(), 1, "{asked}");
    }
}

#[test]
fn the_next_decision_meets_the_last_set() {
    let mut pages = pages(false);
    for closed_first in [true, false, true] {
        pages.publish(closed_first);
    }
    let request = Request {
        direction: Direction::Out,
        ..Request::default()
    };
    let step = pages.gate.enter(&Still, Lane::SHARED, pages.slot, request);
    let Step::Done(GateVerdict::Refused(refusal)) = step else {
        panic!("{step:?}");
    };
    assert_eq!((refusal.rule, pages.contended()), (0, 0));
}
