//! The express way: a record, a window, a breaker and its tally are asked and written one by one.

use std::num::NonZeroU64;

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Mode, Outcome, RefusalKind};
use tidegate_limits::breaker::Breaker;
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_limits::quirks::Quirks;

use super::{NOW, Pages, pages};
use crate::board::{
    BoardRule, CompiledRules, FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Slot,
    Subject,
};
use crate::gate::{ClassAndOrigin, Gate, PlainRequest, Refusal, Request, Ticket};
use crate::lane::Lane;
use crate::sync::Ordering;

const LANE: Lane = Lane::numbered(1);
/// More than any test asks for.
const OPEN: u32 = 10;

/// Asks on the express way; no answer is a fault of the test.
fn express(gate: &Gate, slot: Slot) -> Result<Ticket, Refusal> {
    let plain = PlainRequest {
        slot,
        direction: Direction::Out,
    };
    let answer = gate.express(&NOW, LANE, plain);
    answer
        .or_else(|| {
            gate.express_closely(&NOW, LANE, plain, ClassAndOrigin::of(&Request::default()))
        })
        .unwrap()
}

fn end(gate: &Gate, ticket: Ticket, outcome: Outcome) {
    gate.give_back(&NOW, LANE, &ticket, outcome);
}

/// A resource with a flow rule and a breaker that two failures open: a short record. Their lines of
/// state are 0 and 1.
fn short(pages: &mut Pages) -> Slot {
    let flow = RuleKind::Flow(FlowRule {
        origin: OriginTest::Any,
        subject: Subject::Direct,
        limit: FlowLimit::Qps(OPEN),
    });
    let breaker = RuleKind::Degrade {
        breaker: Breaker {
            trip: BreakerTrip::ErrorRatio(0.4),
            min_requests: 2,
            recovery_ns: 100_000_000,
            lease_ns: 100_000_000,
            quirks: Quirks::None,
        },
        interval_ns: NonZeroU64::new(1_000_000_000).unwrap(),
    };
    let rule = |number, kind| BoardRule {
        number,
        mode: Mode::Enforce,
        state: number,
        quirks: Quirks::None,
        kind,
    };
    let record = ResourceRecord {
        needs: Needs(Needs::RULES | Needs::COUNTED),
        ..ResourceRecord::default()
    };
    let rules = [rule(0, flow), rule(1, breaker)];
    pages.writers.rules.add("short", &record, &rules).unwrap()
}

/// A gate of a seat whose lane has worked on the slot before.
fn worked(pages: &mut Pages, seat: u32, slot: Slot) -> Gate {
    let gate = pages.gate(seat);
    let row = pages
        .ledger
        .row(seat, pages.board.seat(seat).generation, LANE);
    let row = row.unwrap();
    row.totals().mark_used();
    row.cell(slot).unwrap().mark_used();
    gate
}

fn passed(pages: &Pages, slot: Slot) -> u32 {
    let node = pages.ledger.node(slot.index).unwrap();
    node.window(NOW.0).sum()
}

#[test]
fn loom_failures_at_one_moment_trip_the_breaker_of_a_short_record_once() {
    loom::model(|| {
        let mut pages = pages(3, 2);
        let slot = short(&mut pages);
        let gates = [1, 2].map(|seat| worked(&mut pages, seat, slot));
        let threads = gates.map(|gate| {
            let ticket = express(&gate, slot).unwrap();
            thread::spawn(move || end(&gate, ticket, Outcome::Error))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let breaker = pages.ledger.state(1).unwrap();
        let word = breaker.word().load(Ordering::SeqCst);
        assert_eq!(word >> 48 & 0x3fff, 1, "the generation of one trip");
        let refusal = express(&gates[0], slot).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Degrade);
    });
}

#[test]
fn loom_who_meets_a_trip_is_admitted_and_counted_or_refused_and_not() {
    loom::model(|| {
        let mut pages = pages(3, 2);
        let slot = short(&mut pages);
        let (failing, other) = (worked(&mut pages, 1, slot), worked(&mut pages, 2, slot));
        let tickets = [(); 2].map(|()| express(&failing, slot).unwrap());
        let thread = thread::spawn(move || {
            for ticket in tickets {
                end(&failing, ticket, Outcome::Error);
            }
        });
        let met = express(&other, slot);
        thread.join().unwrap();
        let (admitted, refused) = match met {
            Ok(_ticket) => (1, 0),
            Err(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Degrade);
                (0, 1)
            }
        };
        assert_eq!(passed(&pages, slot), 2 + admitted);
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), admitted);
        let (counted, _observed) = pages.ledger.state(1).unwrap().refused_and_observed();
        assert_eq!(counted, refused);
    });
}

#[test]
fn loom_a_refusal_names_the_rule_whose_limit_was_asked() {
    const SHUT: u32 = 7;
    loom::model(|| {
        let mut pages = pages(2, 2);
        let record = |limit, rule| ResourceRecord {
            needs: Needs(Needs::QPS),
            qps_limit: limit,
            qps_rule: rule,
            ..ResourceRecord::default()
        };
        let slot = pages.resource(record(0, SHUT));
        let gate = worked(&mut pages, 1, slot);
        let thread = thread::spawn(move || {
            let plain = PlainRequest {
                slot,
                direction: Direction::Out,
            };
            // No answer: another set came into force meanwhile, and the long way decides.
            if let Some(Err(refusal)) = gate.express(&NOW, LANE, plain) {
                assert_eq!((refusal.rule, refusal.limit), (SHUT, 0));
            }
        });
        let set = CompiledRules::default();
        let published = pages.writers.rules.publish(set, |_slot| record(OPEN, 8));
        published.unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_concurrency_limit_holds_on_the_express_way_and_never_leaks() {
    loom::model(|| {
        let mut pages = pages(3, 2);
        let slot = pages.resource(ResourceRecord {
            needs: Needs(Needs::CONCURRENCY),
            concurrency_limit: 1,
            ..ResourceRecord::default()
        });
        let gates = [1, 2].map(|seat| worked(&mut pages, seat, slot));
        let threads = gates.map(|gate| thread::spawn(move || express(&gate, slot)));
        let answers = threads.map(|thread| thread.join().unwrap());
        let admitted = answers.iter().flatten().count();
        assert!(admitted <= 1, "{admitted} admitted of a limit of 1");
        let inflight = || pages.ledger.node_inflight(&pages.board, slot);
        assert_eq!(inflight(), u32::try_from(admitted).unwrap());
        for (gate, answer) in gates.iter().zip(answers) {
            match answer {
                Ok(ticket) => end(gate, ticket, Outcome::Ok),
                Err(refusal) => assert_eq!(refusal.kind, RefusalKind::Flow),
            }
        }
        assert_eq!(inflight(), 0);
    });
}
