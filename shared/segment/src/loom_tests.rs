//! Every interleaving of a few threads at the multi-word steps, by loom.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-segment loom`

use loom::thread;
use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Outcome};
use tidegate_abi::geometry::Geometry;

use crate::board::{self, Board, Process, Record, RuleSet, Settings, Slot, Writers};
use crate::clock::Clock;
use crate::gate::{Gate, Pass, Request, Step, Verdict};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::page::Page;

#[derive(Clone, Copy)]
struct At(u64);

impl Clock for At {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

const NOW: At = At(1_000_000_000_000);

struct Pages {
    board: Board,
    ledger: Ledger,
    writers: Writers,
}

fn pages(seats: u32, lanes: u32) -> Pages {
    let geometry = Geometry::new(1, seats, lanes, 1).unwrap();
    let settings = Settings {
        generation: 1,
        time_to_live_ns: u64::MAX,
        grace_ns: 0,
        loss_mode: LossMode::Open,
    };
    let (board, writers) =
        board::create(Page::private(geometry.board().words), geometry, settings).unwrap();
    let ledger = Ledger::create(Page::private(geometry.ledger().words), geometry).unwrap();
    Pages {
        board,
        ledger,
        writers,
    }
}

impl Pages {
    fn resource(&mut self, record: Record) -> Slot {
        self.writers.rules.add("r", &record, &[]).unwrap()
    }
    fn gate(&mut self, seat: u32) -> Gate {
        let process = Process {
            pid: seat,
            start: 0,
            uid: 0,
            scope: 0,
        };
        let generation = self.writers.seats.seat(seat, process).unwrap();
        Gate::new(self.board, self.ledger, seat, generation)
    }
}

fn concurrency(limit: u32) -> Record {
    Record {
        needs: Needs(Needs::CONCURRENCY),
        concurrency_limit: limit,
        ..Record::default()
    }
}

fn qps(limit: u32) -> Record {
    Record {
        needs: Needs(Needs::QPS),
        qps_limit: limit,
        ..Record::default()
    }
}

fn enter(gate: &Gate, now: At, lane: u32, slot: Slot) -> Option<Pass> {
    match gate.enter(&now, Lane::numbered(lane), slot, Request::default()) {
        Step::Done(Verdict::Admitted(pass)) => Some(pass),
        Step::Done(Verdict::Refused(_) | Verdict::Stale) | Step::Wait(_) => None,
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
            admitted as u32
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
        let slot = pages.resource(Record::default());
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
        let slot = pages.resource(Record::default());
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

#[test]
fn loom_a_reader_of_the_rules_sees_one_whole_set() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let whole = |limit: u32| Record {
            qps_rule: limit,
            concurrency_limit: limit,
            ..qps(limit)
        };
        let slot = pages.resource(whole(1));
        let board = pages.board;
        let reader = thread::spawn(move || {
            // `None`: the writer was there on every try; the caller then admits and counts.
            if let Some(record) = board.record(slot.index) {
                assert_eq!(record.qps_rule, record.qps_limit);
                assert_eq!(record.concurrency_limit, record.qps_limit);
            }
        });
        for limit in 2..4 {
            pages
                .writers
                .rules
                .publish(RuleSet::default(), |_slot| whole(limit))
                .unwrap();
        }
        reader.join().unwrap();
        assert_eq!(pages.board.record(slot.index).unwrap().qps_limit, 3);
    });
}

#[test]
fn loom_a_reader_of_the_clock_sees_one_whole_calibration() {
    use crate::board::ClockSource;
    use crate::clock::Calibration;

    loom::model(|| {
        let mut pages = pages(2, 1);
        let board = pages.board;
        let reader = thread::spawn(move || {
            if let Some(read) = board.calibration() {
                assert_eq!((read.tsc, read.mult), (read.ns, read.ns));
            }
        });
        for n in 1..3 {
            let calibration = Calibration {
                tsc: n,
                ns: n,
                mult: n,
            };
            pages
                .writers
                .tick
                .publish_clock(ClockSource::Counter(calibration));
        }
        reader.join().unwrap();
    });
}
