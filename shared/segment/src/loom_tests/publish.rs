//! What the agent publishes: the rules as one set, the clock as one calibration.

use loom::thread;
use tidegate_abi::board::Needs;

use super::{NOW, enter, pages, ruled_by};
use crate::board::{
    ClockSource, FlowLimit, FlowRule, OriginTest, Record, RuleKind, RuleSet, Subject,
};
use crate::clock::Calibration;

#[test]
fn loom_a_reader_of_the_rules_sees_one_whole_set() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let whole = |limit: u32| Record {
            qps_rule: limit,
            concurrency_limit: limit,
            needs: Needs(Needs::QPS),
            qps_limit: limit,
            ..Record::default()
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
fn loom_nobody_gets_past_the_rules_while_the_next_set_is_published() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let nobody = RuleKind::Flow(FlowRule {
            origin: OriginTest::Any,
            subject: Subject::Direct,
            limit: FlowLimit::Concurrency(0),
        });
        let slot = pages.ruled(nobody);
        let gate = pages.gate(1);
        let caller = thread::spawn(move || enter(&gate, NOW, 0, slot).is_some());
        let (record, rule) = ruled_by(nobody);
        let set = RuleSet {
            rules: &[rule],
            ..RuleSet::default()
        };
        let record = Record { rules: 1, ..record };
        pages.writers.rules.publish(set, |_slot| record).unwrap();
        assert!(!caller.join().unwrap());
    });
}

#[test]
fn loom_a_reader_of_the_clock_sees_one_whole_calibration() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let board = pages.board;
        let reader = thread::spawn(move || {
            if let Some(read) = board.calibration() {
                assert_eq!(read.base_ns >> 3, read.mult);
            }
        });
        for n in 1..3 {
            let calibration = Calibration {
                base_ns: n << 3,
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
