//! What the agent publishes: the rules as one set, the clock as one calibration.

use loom::thread;
use tidegate_abi::board::Needs;

use super::{NOW, enter, pages, ruled_by};
use crate::board::{
    ClockSource, CompiledRules, FlowLimit, FlowRule, OriginTest, ResourceRecord, RuleKind, Subject,
};
use crate::clock::Calibration;

#[test]
fn loom_a_reader_of_the_rules_sees_one_whole_set() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let whole = |limit: u32| ResourceRecord {
            qps_rule: limit,
            concurrency_limit: limit,
            needs: Needs(Needs::QPS),
            qps_limit: limit,
            ..ResourceRecord::default()
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
                .publish(CompiledRules::default(), |_slot| whole(limit))
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
        let set = CompiledRules {
            rules: &[rule],
            ..CompiledRules::default()
        };
        let record = ResourceRecord { rules: 1, ..record };
        pages.writers.rules.publish(set, |_slot| record).unwrap();
        assert!(!caller.join().unwrap());
    });
}

/// A decision keeps the view that it began with. Of two publishes within it, the first writes the other copy; only
/// the second one has moments that matter.
#[test]
fn loom_a_view_that_a_second_publish_writes_over_gives_its_own_set_or_nothing() {
    loom::model(|| {
        let mut pages = pages(2, 1);
        let limited = |limit: u32| {
            let kind = RuleKind::Flow(FlowRule {
                origin: OriginTest::Any,
                subject: Subject::Direct,
                limit: FlowLimit::Concurrency(limit),
            });
            let (record, rule) = ruled_by(kind);
            (ResourceRecord { rules: 1, ..record }, rule)
        };
        let publish = |pages: &mut super::Pages, limit: u32| {
            let (record, rule) = limited(limit);
            let set = CompiledRules {
                rules: &[rule],
                ..CompiledRules::default()
            };
            pages.writers.rules.publish(set, |_slot| record).unwrap();
        };
        let (record, rule) = limited(1);
        pages.writers.rules.add("r", &record, &[rule]).unwrap();
        let view = pages.board.view();
        publish(&mut pages, 2);
        let decision = thread::spawn(move || {
            // Reading the record as well would take a minute and more; the model above reads it.
            if let Some(rule) = view.rule(0) {
                assert_eq!(rule, limited(1).1);
            }
        });
        publish(&mut pages, 3);
        decision.join().unwrap();
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
