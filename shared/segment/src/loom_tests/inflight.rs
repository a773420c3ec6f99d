//! Places in flight: over lanes, seats and a limit.

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::Outcome;

use super::{NOW, enter, pages};
use crate::board::ResourceRecord;
use crate::lane::Lane;

fn concurrency(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::CONCURRENCY),
        concurrency_limit: limit,
        ..ResourceRecord::default()
    }
}

#[test]
fn loom_a_concurrency_limit_is_never_exceeded_and_never_leaks() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let slot = pages.resource(concurrency(1));
        let gates = [pages.gate(1), pages.gate(2)];
        let threads = gates.map(|gate| thread::spawn(move || enter(&gate, NOW, 0, slot)));
        let passes = threads.map(|thread| thread.join().unwrap());
        let admitted = passes.iter().flatten().count();
        assert!(admitted <= 1, "{admitted} admitted of a limit of 1");
        assert_eq!(
            pages.ledger.node_inflight(&pages.board, slot),
            u32::try_from(admitted).unwrap()
        );
        for (gate, pass) in gates.iter().zip(passes) {
            if let Some(pass) = pass {
                gate.exit(&NOW, Lane::SHARED, pass, Outcome::Ok);
            }
        }
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), 0);
    });
}

#[test]
fn loom_permits_taken_and_given_back_on_different_lanes_add_up() {
    loom::model(|| {
        let mut pages = pages(2, 3);
        let slot = pages.resource(ResourceRecord::default());
        let gate = pages.gate(1);
        let held = enter(&gate, NOW, 1, slot).unwrap();
        let giver = thread::spawn(move || gate.exit(&NOW, Lane::numbered(2), held, Outcome::Ok));
        let _kept = enter(&gate, NOW, 1, slot).unwrap();
        // A sum taken meanwhile may see one half of the move, never a number that wrapped.
        assert!(pages.ledger.node_inflight(&pages.board, slot) <= 2);
        giver.join().unwrap();
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), 1);
    });
}

#[test]
fn loom_a_revoked_seat_counts_for_nothing_whatever_it_is_doing() {
    loom::model(|| {
        let mut pages = pages(2, 2);
        let slot = pages.resource(ResourceRecord::default());
        let gate = pages.gate(1);
        let worker = thread::spawn(move || {
            if let Some(pass) = enter(&gate, NOW, 1, slot) {
                gate.exit(&NOW, Lane::numbered(1), pass, Outcome::Ok);
            }
        });
        pages.writers.seats.revoke(1);
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), 0);
        worker.join().unwrap();
        assert_eq!(pages.ledger.node_inflight(&pages.board, slot), 0);
    });
}
