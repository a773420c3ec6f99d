//! Pacing and warm-up: a turn is one exchange, a rise reads two words more.

use loom::thread;
use tidegate_abi::decision::Direction;

use super::{At, NOW, Pages, enter, pages};
use crate::board::{FlowLimit, FlowRule, OriginTest, RuleKind, Slot, Subject, WarmUpNumbers};
use crate::gate::{Gate, GateVerdict, Request, Step};
use crate::lane::Lane;

const MS: u64 = 1_000_000;

fn flow(pages: &mut Pages, limit: FlowLimit) -> Slot {
    pages.ruled(RuleKind::Flow(FlowRule {
        origin: OriginTest::Any,
        subject: Subject::Direct,
        limit,
    }))
}

/// How long one caller waits.
fn wait(gate: &Gate, now: At, slot: Slot) -> Option<u64> {
    let request = Request {
        direction: Direction::Out,
        ..Request::default()
    };
    match gate.enter(&now, Lane::SHARED, slot, request) {
        Step::Done(GateVerdict::Admitted(_)) => Some(0),
        Step::Wait(waiting) => Some(waiting.until_ns() - now.0),
        Step::Done(GateVerdict::Refused(_) | GateVerdict::Stale) => None,
    }
}

#[test]
fn loom_two_callers_of_one_pace_get_two_turns() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        let pace = FlowLimit::Pace {
            count: 10.0,
            max_wait_ns: 1_000 * MS,
        };
        let slot = flow(&mut pages, pace);
        let gates = [pages.gate(1), pages.gate(2)];
        let threads = gates.map(|gate| thread::spawn(move || wait(&gate, NOW, slot)));
        let mut waits = threads.map(|thread| thread.join().unwrap());
        waits.sort_unstable();
        assert_eq!(waits, [Some(0), Some(100 * MS)]);
    });
}

#[test]
fn loom_a_cold_node_admits_its_cold_rate_to_two_callers() {
    loom::model(|| {
        let mut pages = pages(3, 1);
        // Cold, a third of 3.
        let slot = flow(
            &mut pages,
            FlowLimit::WarmUp(WarmUpNumbers {
                count: 3.0,
                period_s: 10,
                cold_factor: 3,
            }),
        );
        let gates = [pages.gate(1), pages.gate(2)];
        let threads = gates.map(|gate| thread::spawn(move || enter(&gate, NOW, 0, slot).is_some()));
        let admitted = threads.map(|thread| u32::from(thread.join().unwrap()));
        assert_eq!(admitted.iter().sum::<u32>(), 1);
    });
}
