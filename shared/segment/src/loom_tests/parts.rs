//! A request that counts on two nodes: the resource, and the resource with its origin.

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Direction, Outcome};

use super::{NOW, pages_of, ruled_by};
use crate::board::{
    BoardRule, FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Slot, Subject,
};
use crate::gate::{Gate, GateVerdict, Pass, Request, RequestName, Step};
use crate::lane::Lane;

pub(super) const CALLER: u64 = 7;

fn flow(origin: OriginTest, limit: FlowLimit) -> RuleKind {
    RuleKind::Flow(FlowRule {
        origin,
        subject: Subject::Direct,
        limit,
    })
}

/// A request of the caller, whose node is known.
pub(super) fn request_of_caller(part: Slot) -> Request<'static> {
    Request {
        // Outbound: the scopes are not looked at, which saves their interleavings.
        direction: Direction::Out,
        origin: RequestName {
            hash: CALLER,
            node: Some(part),
        },
        ..Request::default()
    }
}

/// Two callers of one origin, each at one moment, and what is on the two nodes then: passes in their
/// windows, and requests in flight.
fn two_callers(of_all: FlowLimit, of_one: FlowLimit) -> (usize, [(u32, u32); 2]) {
    let mut pages = pages_of(2, 3, 1);
    let (record, first) = ruled_by(flow(OriginTest::Any, of_all));
    let second = BoardRule {
        state: 1,
        ..ruled_by(flow(OriginTest::Is(CALLER), of_one)).1
    };
    let slot = pages
        .writers
        .rules
        .add("r", &record, &[first, second])
        .unwrap();
    let counted = ResourceRecord {
        needs: Needs(Needs::COUNTED),
        ..ResourceRecord::default()
    };
    let part = pages.writers.rules.add("p", &counted, &[]).unwrap();
    let enter = move |gate: Gate| -> Option<Pass> {
        match gate.enter(&NOW, Lane::SHARED, slot, request_of_caller(part)) {
            Step::Done(GateVerdict::Admitted(pass)) => Some(pass),
            Step::Done(GateVerdict::Refused(_) | GateVerdict::Stale) | Step::Wait(_) => None,
        }
    };
    let gates = [pages.gate(1), pages.gate(2)];
    let threads = gates.map(|gate| thread::spawn(move || enter(gate)));
    let passes = threads.map(|thread| thread.join().unwrap());
    let counts = [slot, part].map(|slot| {
        let in_window = pages.ledger.node(slot.index).unwrap().window(NOW.0).sum();
        (in_window, pages.ledger.node_inflight(&pages.board, slot))
    });
    let admitted = passes.iter().flatten().count();
    for (gate, pass) in gates.iter().zip(passes) {
        if let Some(pass) = pass {
            gate.exit(&NOW, Lane::SHARED, pass, Outcome::Ok);
        }
    }
    for slot in [slot, part] {
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), 0);
    }
    (admitted, counts)
}

#[test]
fn loom_a_pass_that_the_second_node_refuses_is_taken_back_from_the_first() {
    loom::model(|| {
        let (admitted, counts) = two_callers(FlowLimit::Qps(2), FlowLimit::Qps(1));
        assert_eq!((admitted, counts), (1, [(1, 1), (1, 1)]));
    });
}

#[test]
fn loom_a_place_that_the_second_node_refuses_is_given_back_on_the_first() {
    loom::model(|| {
        let limits = (FlowLimit::Concurrency(2), FlowLimit::Concurrency(1));
        let (admitted, counts) = two_callers(limits.0, limits.1);
        let there = u32::try_from(admitted).unwrap();
        assert!(admitted <= 1, "{admitted} of a limit of 1");
        assert_eq!(counts, [(there, there), (there, there)]);
    });
}
