//! What the gate answers, on real pages in private memory and with a scripted clock.

use crate::fixture::{Fixture, GRACE_NS, SECOND, TIME_TO_LIVE_NS};
use tidegate_abi::board::{Needs, ScopeWord};
use tidegate_abi::decision::{
    Cause, Class, Direction, LossMode, Outcome, Reason, RefusalKind, ScopeState,
};
use tidegate_segment::board::{PublishedScope, ResourceRecord, Slot};
use tidegate_segment::gate::{Gate, GateVerdict, Pass, Refusal, Request, Step};
use tidegate_segment::lane::Lane;

pub(crate) const LANE: Lane = Lane::numbered(1);

fn qps(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::QPS),
        qps_limit: limit,
        qps_rule: 7,
        ..ResourceRecord::default()
    }
}

fn concurrency(limit: u32) -> ResourceRecord {
    ResourceRecord {
        needs: Needs(Needs::CONCURRENCY),
        concurrency_limit: limit,
        concurrency_rule: 9,
        ..ResourceRecord::default()
    }
}

fn enter(fixture: &Fixture, gate: &Gate, slot: Slot) -> Result<Pass, Refusal> {
    ask(fixture, gate, slot, Request::default())
}

#[expect(
    clippy::unreachable,
    reason = "the seat and the slot are the test's own"
)]
pub(crate) fn ask(
    fixture: &Fixture,
    gate: &Gate,
    slot: Slot,
    request: Request<'_>,
) -> Result<Pass, Refusal> {
    match gate.enter(&fixture.clock, LANE, slot, request) {
        Step::Done(GateVerdict::Admitted(pass)) => Ok(pass),
        Step::Done(GateVerdict::Refused(refusal)) => Err(refusal),
        Step::Done(GateVerdict::Stale) | Step::Wait(_) => unreachable!(),
    }
}

fn is_stale(fixture: &Fixture, gate: &Gate, slot: Slot) -> bool {
    let step = gate.enter(&fixture.clock, LANE, slot, Request::default());
    matches!(step, Step::Done(GateVerdict::Stale))
}

pub(crate) fn publish(fixture: &mut Fixture, scope: u32, word: ScopeWord) {
    let report = PublishedScope {
        word,
        allowed_qps_milli: u64::MAX,
        cause: Cause::None,
        since_ns: 0,
        inflight: 0,
    };
    assert!(fixture.writers.tick.publish_scope(scope, &report));
}

#[test]
fn a_qps_rule_admits_its_limit_in_an_aligned_window_and_names_itself_when_it_refuses() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", qps(100));
    let gate = fixture.gate(1, 0);
    for _request in 0..100 {
        let pass = enter(&fixture, &gate, slot).unwrap();
        gate.exit(&fixture.clock, LANE, pass, Outcome::Ok);
    }
    let refusal = enter(&fixture, &gate, slot).unwrap_err();
    assert_eq!(
        (
            refusal.kind,
            refusal.reason,
            refusal.rule,
            refusal.value,
            refusal.limit
        ),
        (RefusalKind::Flow, Reason::Qps, 7, 100, 100)
    );
    let wait_ns = refusal.retry_after_ns;
    assert!(
        (SECOND..=SECOND * 5 / 4).contains(&wait_ns),
        "room comes back in 1 s, not {wait_ns}"
    );
    fixture.clock.advance(SECOND);
    let _held = enter(&fixture, &gate, slot).unwrap();
    let counts = fixture.ledger.node_counts(&fixture.board, slot);
    assert_eq!(
        (counts.passed, counts.success, counts.inflight),
        (101, 100, 1)
    );
    assert_eq!(counts.refused, [0, 0, 0, 1, 0]);
}

#[test]
fn a_count_takes_that_much_of_the_window_and_one_place_in_flight() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", qps(10));
    let gate = fixture.gate(1, 0);
    let six = Request {
        count: 6,
        ..Request::default()
    };
    let _held = ask(&fixture, &gate, slot, six).unwrap();
    let _refusal = ask(&fixture, &gate, slot, six).unwrap_err();
    assert_eq!(fixture.inflight(slot), 1);
}

#[test]
fn a_concurrency_rule_counts_over_all_seats_and_lanes() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", concurrency(2));
    let (one, two) = (fixture.gate(1, 0), fixture.gate(2, 0));
    let first = enter(&fixture, &one, slot).unwrap();
    let _held = enter(&fixture, &two, slot).unwrap();
    let refusal = enter(&fixture, &one, slot).unwrap_err();
    assert_eq!(
        (refusal.reason, refusal.rule, refusal.value),
        (Reason::Concurrency, 9, 2)
    );
    // Given back on another lane than it was taken on.
    one.exit(&fixture.clock, Lane::numbered(2), first, Outcome::Ignore);
    assert_eq!(fixture.inflight(slot), 1);
    let _held = enter(&fixture, &two, slot).unwrap();
    let _refusal = enter(&fixture, &one, slot).unwrap_err();
}

#[test]
fn a_full_window_gives_the_place_in_flight_back() {
    let mut fixture = Fixture::new(LossMode::Open);
    let both = ResourceRecord {
        needs: Needs(Needs::CONCURRENCY | Needs::QPS),
        concurrency_limit: 5,
        ..qps(1)
    };
    let slot = fixture.resource("r", both);
    let gate = fixture.gate(1, 0);
    let _held = enter(&fixture, &gate, slot).unwrap();
    for _try in 0..10 {
        assert_eq!(
            enter(&fixture, &gate, slot).unwrap_err().reason,
            Reason::Qps
        );
    }
    assert_eq!(fixture.inflight(slot), 1);
}

#[test]
fn a_rule_in_observe_mode_counts_and_refuses_nobody() {
    let mut fixture = Fixture::new(LossMode::Open);
    let record = ResourceRecord {
        needs: Needs(Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY),
        observed_qps_limit: 3,
        observed_concurrency_limit: 4,
        ..ResourceRecord::default()
    };
    let slot = fixture.resource("r", record);
    let gate = fixture.gate(1, 0);
    for _request in 0..10 {
        let _held = enter(&fixture, &gate, slot).unwrap();
    }
    assert_eq!(fixture.ledger.node(slot.index).unwrap().observed(), (7, 6));
}

#[test]
fn a_seat_that_is_taken_away_takes_its_permits_with_it() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", concurrency(10));
    let (dead, alive) = (fixture.gate(1, 0), fixture.gate(2, 0));
    let kept: Vec<Pass> = (0..5)
        .map(|_| enter(&fixture, &dead, slot).unwrap())
        .collect();
    let _held = enter(&fixture, &alive, slot).unwrap();
    assert_eq!(fixture.inflight(slot), 6);
    fixture.writers.seats.revoke(1);
    assert_eq!(fixture.inflight(slot), 1);
    let late = dead.enter(&fixture.clock, LANE, slot, Request::default());
    assert!(matches!(late, Step::Done(GateVerdict::Stale)));
    dead.exit(&fixture.clock, LANE, kept[0], Outcome::Ok);
    assert_eq!(fixture.inflight(slot), 1);

    // The next holder of the seat begins at nothing, and a late exit of the last one is no news.
    fixture.ledger.clear_seat(1, fixture.board.resources_used());
    let next = fixture.gate(1, 0);
    let _held = enter(&fixture, &next, slot).unwrap();
    dead.exit(&fixture.clock, LANE, kept[1], Outcome::Ok);
    assert_eq!(fixture.inflight(slot), 2);
}

#[test]
fn a_slot_of_another_generation_is_stale() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", qps(10));
    let gate = fixture.gate(1, 0);
    let old = Slot {
        generation: slot.generation + 1,
        ..slot
    };
    assert!(is_stale(&fixture, &gate, old));
    let missing = Slot {
        index: 5,
        generation: 1,
    };
    assert!(is_stale(&fixture, &gate, missing));
    let outside = Slot {
        index: u32::MAX,
        generation: 1,
    };
    assert!(is_stale(&fixture, &gate, outside));
}

#[test]
fn overload_admits_below_the_tight_limit_and_only_looks_at_inbound_work() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 1);
    let overload = ScopeWord {
        state: ScopeState::Overload,
        tight: 3,
        ..ScopeWord::OPEN
    };
    publish(&mut fixture, 1, overload);
    for _request in 0..3 {
        let _held = enter(&fixture, &gate, slot).unwrap();
    }
    let refusal = enter(&fixture, &gate, slot).unwrap_err();
    assert_eq!(
        (refusal.kind, refusal.reason, refusal.retry),
        (RefusalKind::System, Reason::Overload, true)
    );
    let out = Request {
        direction: Direction::Out,
        ..Request::default()
    };
    let _held = ask(&fixture, &gate, slot, out).unwrap();
    let other_scope = fixture.gate(2, 2);
    let _held = enter(&fixture, &other_scope, slot).unwrap();
}

#[test]
fn the_client_finds_overload_by_itself_when_the_entry_limit_is_reached() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    let healthy = ScopeWord {
        near: true,
        entry: 10,
        tight: 4,
        ..ScopeWord::OPEN
    };
    // Without evidence the wide limit alone refuses nobody, up to twice of it.
    publish(&mut fixture, 0, healthy);
    for _request in 0..20 {
        let _held = enter(&fixture, &gate, slot).unwrap();
    }
    assert_eq!(enter(&fixture, &gate, slot).unwrap_err().limit, 4);
    // With evidence it holds at once.
    publish(
        &mut fixture,
        0,
        ScopeWord {
            short: true,
            entry: 21,
            ..healthy
        },
    );
    let _held = enter(&fixture, &gate, slot).unwrap();
    assert_eq!(
        enter(&fixture, &gate, slot).unwrap_err().reason,
        Reason::Overload
    );
}

#[test]
fn a_scope_far_from_its_limit_is_counted_now_and_then() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    publish(
        &mut fixture,
        0,
        ScopeWord {
            short: true,
            entry: 100,
            tight: 10,
            ..ScopeWord::OPEN
        },
    );
    let admitted = (0..200)
        .filter(|_| enter(&fixture, &gate, slot).is_ok())
        .count();
    assert_eq!(
        admitted, 100,
        "half the limit is seen at a sample, from there each is counted"
    );
}

#[test]
fn probes_pass_within_their_budget() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    for _request in 0..100 {
        let _held = enter(&fixture, &gate, slot).unwrap();
    }
    publish(
        &mut fixture,
        0,
        ScopeWord {
            state: ScopeState::Reject,
            ..ScopeWord::OPEN
        },
    );
    let probe = Request {
        class: Class::Probe,
        ..Request::default()
    };
    let admitted = (0..100)
        .filter(|_| ask(&fixture, &gate, slot, probe).is_ok())
        .count();
    assert!(
        (5..=7).contains(&admitted),
        "{admitted} of 100 probes after 100 requests"
    );
    assert_eq!(
        enter(&fixture, &gate, slot).unwrap_err().reason,
        Reason::Reject
    );
}

#[test]
fn a_silent_agents_limits_are_kept_for_the_grace_time_and_then_follow_the_mode() {
    for (mode, refused) in [
        (LossMode::Open, None),
        (LossMode::Last, Some(Reason::Reject)),
        (LossMode::Closed, Some(Reason::AgentLost)),
    ] {
        let mut fixture = Fixture::new(mode);
        let slot = fixture.resource("r", qps(1));
        let gate = fixture.gate(1, 0);
        publish(
            &mut fixture,
            0,
            ScopeWord {
                state: ScopeState::Reject,
                ..ScopeWord::OPEN
            },
        );
        fixture.clock.advance(TIME_TO_LIVE_NS + GRACE_NS);
        assert_eq!(
            enter(&fixture, &gate, slot).unwrap_err().reason,
            Reason::Reject
        );
        assert_eq!(fixture.ledger.seat_faults(1), (0, 0));
        fixture.clock.advance(1);
        assert_eq!(
            enter(&fixture, &gate, slot)
                .err()
                .map(|refusal| refusal.reason),
            refused
        );
        // The static rule stays in force in every mode.
        let again = enter(&fixture, &gate, slot).unwrap_err().reason;
        assert_eq!(again, refused.unwrap_or(Reason::Qps));
        fixture
            .writers
            .tick
            .beat(1_000 * SECOND + TIME_TO_LIVE_NS + GRACE_NS + 1);
        assert_eq!(
            enter(&fixture, &gate, slot).unwrap_err().reason,
            Reason::Reject
        );
    }
}

#[test]
fn one_shot_callers_get_the_allowed_qps_with_a_burst_of_a_tenth_of_a_second() {
    let mut fixture = Fixture::new(LossMode::Open);
    let gate = fixture.gate(1, 0);
    let overload = ScopeWord {
        state: ScopeState::Overload,
        ..ScopeWord::OPEN
    };
    let report = PublishedScope {
        word: overload,
        allowed_qps_milli: 200_000,
        cause: Cause::Cpu,
        since_ns: 0,
        inflight: 0,
    };
    fixture.writers.tick.publish_scope(0, &report);
    let mut admitted = 0;
    for _step in 0..1_000 {
        admitted += (0..5)
            .filter(|_| gate.admit_one_shot(&fixture.clock, 0).is_ok())
            .count();
        fixture.clock.advance(SECOND / 1_000);
    }
    assert_eq!(admitted, 200);
}

#[test]
fn names_are_read_back_from_the_directory() {
    let mut fixture = Fixture::new(LossMode::Open);
    let names = ["a", "order-create", "größe"];
    let slots: Vec<Slot> = names
        .iter()
        .map(|name| fixture.resource(name, qps(1)))
        .collect();
    for (name, slot) in names.iter().zip(slots) {
        let mut buffer = [0; 256];
        assert_eq!(
            fixture.board.name(slot.index, &mut buffer),
            Some((slot, *name))
        );
    }
    for index in 3..8 {
        fixture.resource(&format!("r{index}"), qps(1));
    }
    let fault = fixture
        .writers
        .rules
        .add("one too many", &qps(1), &[])
        .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "all 8 resource slots are taken; raise pages.max_resources and restart"
    );
}
