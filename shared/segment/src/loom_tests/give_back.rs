//! A node that is taken back while a request decides and ends.

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::Outcome;

use super::parts::{CALLER, request_of_caller};
use super::{NOW, pages_of, ruled_by};
use crate::board::{FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Subject};
use crate::gate::{Gate, GateVerdict, Step};
use crate::lane::Lane;

const COUNTED: Needs = Needs(Needs::COUNTED);

#[test]
fn loom_what_rested_after_it_was_taken_back_begins_with_nothing() {
    loom::model(|| {
        let mut pages = pages_of(2, 2, 1);
        let (record, rule) = ruled_by(RuleKind::Flow(FlowRule {
            origin: OriginTest::Is(CALLER),
            subject: Subject::Direct,
            limit: FlowLimit::Concurrency(1),
        }));
        let own = pages.writers.rules.add("r", &record, &[rule]).unwrap();
        let counted = ResourceRecord {
            needs: COUNTED,
            ..ResourceRecord::default()
        };
        let part = pages.writers.rules.add("p", &counted, &[]).unwrap();
        let gate = pages.gate(1);
        let request = request_of_caller(part);
        let enter = move |gate: &Gate| gate.enter(&NOW, Lane::SHARED, own, request);
        let caller = thread::spawn(move || {
            let Step::Done(GateVerdict::Admitted(pass)) = enter(&gate) else {
                panic!("one is allowed, wherever it is counted");
            };
            gate.exit(&NOW, Lane::SHARED, pass, Outcome::Ok);
        });
        let closed = pages.writers.rules.close(part);
        // The rest: what began before has ended.
        caller.join().unwrap();
        assert_eq!(pages.ledger.node_inflight(&pages.board, own), 0);
        pages
            .ledger
            .clear_node(closed.index, pages.board.seats_used());
        pages
            .writers
            .rules
            .reopen(closed, "q", &counted, &[])
            .unwrap();
        let passed = || pages.ledger.node(closed.index).unwrap().window(NOW.0).sum();
        assert_eq!(pages.ledger.node_inflight(&pages.board, closed), 0);
        assert_eq!(passed(), 0);
        // Whoever still knows the old one does not count on the new one.
        assert!(matches!(enter(&gate), Step::Done(GateVerdict::Admitted(_))));
        assert_eq!(pages.ledger.node_inflight(&pages.board, closed), 0);
        assert_eq!(passed(), 0);
    });
}
