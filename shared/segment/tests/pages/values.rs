//! Lists of values under a limit on the calls of each value that run at once.

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{LossMode, Mode, Outcome, Reason, RefusalKind};
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule, ParamLimit, ParamRule, PoolSpan, ResourceRecord, RuleKind, Slot,
};
use tidegate_segment::gate::{Arg, Gate, GateVerdict, Pass, Refusal, Request, Step, VALUES};
use tidegate_segment::lane::Lane;

use super::fixture::Fixture;

const LANE: Lane = Lane::numbered(1);

/// A rule by which each value of the first argument may run once at a time, with half of the sets.
fn one_at_a_time(number: u32, mode: Mode) -> BoardRule {
    BoardRule {
        number,
        mode,
        state: number,
        quirks: Quirks::None,
        kind: RuleKind::Param(ParamRule {
            index: 0,
            limit: ParamLimit::Concurrency,
            count: 1,
            items: PoolSpan::default(),
            sets: PoolSpan {
                start: number % 2 * 4,
                length: 4,
            },
        }),
    }
}

/// A resource with such rules.
fn ruled(pages: &mut Fixture, rules: &[BoardRule]) -> Slot {
    let record = ResourceRecord {
        needs: Needs(Needs::RULES),
        ..ResourceRecord::default()
    };
    pages.writers.rules.add("r", &record, rules).unwrap()
}

fn one_of_each(pages: &mut Fixture) -> Slot {
    ruled(pages, &[one_at_a_time(3, Mode::Enforce)])
}

#[expect(clippy::panic_in_result_fn, reason = "a test ends here")]
fn enter(pages: &Fixture, gate: &Gate, slot: Slot, values: &[u64]) -> Result<Pass, Refusal> {
    let args = [Arg::Many(values)];
    let request = Request {
        args: &args,
        ..Request::default()
    };
    match gate.enter(&pages.clock, LANE, slot, request) {
        Step::Done(GateVerdict::Admitted(pass)) => Ok(pass),
        Step::Done(GateVerdict::Refused(refusal)) => Err(refusal),
        other @ (Step::Done(GateVerdict::Stale) | Step::Wait(_)) => panic!("{other:?}"),
    }
}

/// Values of sets and fingerprints of their own.
fn values(count: usize) -> Vec<u64> {
    let spread = (1_u64..).map(|number| number << 32 | number);
    spread.take(count).collect()
}

#[test]
fn each_value_of_a_list_counts_until_its_request_ends() {
    let mut pages = Fixture::new(LossMode::Open);
    let slot = one_of_each(&mut pages);
    let gate = pages.gate(1, 0);
    let list = values(VALUES);
    let pass = enter(&pages, &gate, slot, &list).unwrap();
    for value in &list {
        let refusal = enter(&pages, &gate, slot, &[*value]).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.reason),
            (RefusalKind::Param, Reason::Concurrency)
        );
        assert_eq!((refusal.rule, refusal.value, refusal.limit), (3, 1, 1));
    }
    gate.exit(&pages.clock, LANE, pass, Outcome::Ok);
    for value in &list {
        let pass = enter(&pages, &gate, slot, &[*value]).unwrap();
        gate.exit(&pages.clock, LANE, pass, Outcome::Ok);
    }
}

#[test]
fn a_list_that_is_longer_than_a_request_may_hold_is_refused_with_that_cause() {
    let mut pages = Fixture::new(LossMode::Open);
    let slot = one_of_each(&mut pages);
    let gate = pages.gate(1, 0);
    let list = values(VALUES + 1);
    let refusal = enter(&pages, &gate, slot, &list).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.reason),
        (RefusalKind::Param, Reason::Values)
    );
    assert_eq!((refusal.rule, refusal.value, refusal.limit), (3, 9, 8));
    assert!(!refusal.retry);
    // It holds none of them.
    let pass = enter(&pages, &gate, slot, &list[..VALUES]).unwrap();
    gate.exit(&pages.clock, LANE, pass, Outcome::Ok);
}

#[test]
fn a_rule_that_observes_values_takes_no_place_from_one_that_holds_them() {
    let mut pages = Fixture::new(LossMode::Open);
    let rules = [
        one_at_a_time(2, Mode::Observe),
        one_at_a_time(3, Mode::Enforce),
    ];
    let slot = ruled(&mut pages, &rules);
    let gate = pages.gate(1, 0);
    let list = values(VALUES);
    let pass = enter(&pages, &gate, slot, &list).unwrap();
    for value in &list {
        let refusal = enter(&pages, &gate, slot, &[*value]).unwrap_err();
        assert_eq!((refusal.rule, refusal.value, refusal.limit), (3, 1, 1));
    }
    gate.exit(&pages.clock, LANE, pass, Outcome::Ok);
    let pass = enter(&pages, &gate, slot, &list).unwrap();
    gate.exit(&pages.clock, LANE, pass, Outcome::Ok);
}
