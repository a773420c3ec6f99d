//! The pass window: one word, and with borrowing a second one.

use std::sync::Arc;

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_limits::quirks::Quirks;

use super::{At, NOW, enter, pages};
use crate::board::ResourceRecord;
use crate::clock::Clock;
use crate::sync::{Ordering, Word};

fn qps(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::QPS),
        qps_limit: limit,
        ..ResourceRecord::default()
    }
}

#[test]
fn loom_a_window_admits_its_limit_over_a_bucket_edge() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let slot = pages.resource(qps(1));
        let edge = At(NOW.0 + 500_000_000);
        let callers = [(pages.gate(1), NOW), (pages.gate(2), edge)];
        let threads =
            callers.map(|(gate, now)| thread::spawn(move || enter(&gate, now, 0, slot).is_some()));
        let admitted = threads.map(|thread| u32::from(thread.join().unwrap()));
        assert_eq!(admitted.iter().sum::<u32>(), 1);
    });
}

/// A clock that goes on while others read it. A reading is an exchange: nobody reads a time that is
/// gone by.
#[derive(Clone)]
struct Moving(Arc<Word>);

impl Clock for Moving {
    fn now_ns(&self) -> u64 {
        self.0.change(Ordering::AcqRel, |now_ns| now_ns)
    }
}

#[test]
fn loom_a_loan_counts_for_all_who_use_the_bucket_it_is_of() {
    loom::model(|| {
        let mut pages = pages(1, 1);
        let slot = pages.resource(qps(1));
        let node = pages.ledger.node(slot.index).unwrap();
        // The window is full by what leaves it at the next edge; nobody has borrowed yet.
        assert!(node.admit(&NOW, NOW.0, 1, 1).admitted());
        let (late_ns, edge_ns) = (NOW.0 + 999_000_000, NOW.0 + 1_000_000_000);
        let clock = Moving(Arc::new(Word::new(late_ns)));
        let borrower = clock.clone();
        let threads = [
            thread::spawn(move || {
                let now_ns = borrower.now_ns();
                node.borrow(&borrower, now_ns, (1, 1), Quirks::None)
                    .is_some()
            }),
            thread::spawn(move || {
                clock.0.change(Ordering::AcqRel, |_before| edge_ns);
                let now_ns = clock.now_ns();
                let room = node.room(now_ns, 1);
                node.admit(&clock, now_ns, 1, room).admitted()
            }),
        ];
        let passed = threads.map(|thread| u32::from(thread.join().unwrap()));
        assert!(passed.iter().sum::<u32>() <= 1, "{passed:?}");
    });
}
