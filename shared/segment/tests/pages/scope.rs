//! What the gate makes of a scope's words: limits, what counts towards them, and a surge.

use crate::fixture::{Fixture, GRACE_NS, SECOND, TIME_TO_LIVE_NS};
use crate::gate::{LANE, ask, publish};
use tidegate_abi::board::{ScopeWord, SurgeWord};
use tidegate_abi::decision::{LossMode, Outcome, Reason, ScopeState};
use tidegate_segment::board::{ResourceRecord, Slot};
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Gate, GateVerdict, Request, Step};

/// What a request that sees so many waiting itself is refused with: what the scope held.
fn held_when_refused(
    fixture: &Fixture,
    gate: &Gate,
    slot: Slot,
    waiting: Option<u32>,
) -> Option<u32> {
    let request = Request {
        waiting,
        ..Request::default()
    };
    match ask(fixture, gate, slot, request) {
        Ok(pass) => {
            gate.exit(&fixture.clock, LANE, pass, Outcome::Ok);
            None
        }
        Err(refusal) => Some(refusal.value),
    }
}

#[test]
fn what_waits_to_be_accepted_counts_like_what_is_in_flight() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    let limits = |state| ScopeWord {
        state,
        short: true,
        near: true,
        observe: false,
        entry: 10,
        tight: 5,
    };
    assert!(!gate.is_pressed());
    for (state, limit) in [(ScopeState::Healthy, 10), (ScopeState::Overload, 5)] {
        publish(&mut fixture, 0, limits(state));
        assert!(gate.is_pressed());
        for (told, looked, held) in [
            (limit - 1, None, None),
            (limit, None, Some(limit)),
            // What the caller has just seen takes the place of the last tick's count.
            (limit, Some(0), None),
            (0, Some(limit), Some(limit)),
        ] {
            fixture.writers.tick.publish_accept_queue(0, told);
            let refused = held_when_refused(&fixture, &gate, slot, looked);
            assert_eq!(refused, held, "{state:?}: {told} told, {looked:?} seen");
        }
    }
}

#[test]
fn a_surge_needs_no_evidence_at_the_entry_limit_and_slow_growth_does() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    let calm = ScopeWord {
        state: ScopeState::Healthy,
        short: false,
        near: true,
        observe: false,
        entry: 40,
        tight: 5,
    };
    publish(&mut fixture, 0, calm);
    let from = SurgeWord {
        held: 4,
        least_qps: 300,
    };
    fixture.writers.tick.publish_held(0, from, 0);
    fixture.writers.tick.beat(fixture.clock.now_ns());
    let refused =
        |fixture: &Fixture, waiting| held_when_refused(fixture, &gate, slot, Some(waiting));
    fixture.clock.advance(SECOND / 10);
    // In 100 ms 30 are the mark.
    assert_eq!(refused(&fixture, 39), None);
    assert_eq!(refused(&fixture, 40), Some(40));
    fixture.clock.advance(SECOND / 10);
    // In 200 ms they are 60, and twice the limit is too much in any case.
    assert_eq!(refused(&fixture, 64), None);
    assert_eq!(refused(&fixture, 65), Some(65));
    fixture.writers.tick.publish_held(0, SurgeWord::NONE, 0);
    assert_eq!(refused(&fixture, 79), None);
    assert_eq!(refused(&fixture, 80), Some(80));
}

#[test]
fn what_other_tenants_held_counts_in_the_scopes_limits() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 0);
    for (state, limit) in [(ScopeState::Healthy, 10), (ScopeState::Overload, 5)] {
        let limits = ScopeWord {
            state,
            short: true,
            near: true,
            observe: false,
            entry: 10,
            tight: 5,
        };
        publish(&mut fixture, 0, limits);
        fixture.writers.tick.publish_held(0, SurgeWord::NONE, 3);
        let refused = |waiting| held_when_refused(&fixture, &gate, slot, Some(waiting));
        assert_eq!(refused(limit - 4), None, "{state:?}");
        assert_eq!(refused(limit - 3), Some(limit), "{state:?}");
    }
}

/// A host far from its limit, as the agent publishes it each tick.
fn calm(fixture: &mut Fixture, gate_scope: u32) -> ScopeWord {
    let word = ScopeWord {
        state: ScopeState::Healthy,
        short: true,
        near: false,
        observe: false,
        entry: 10,
        tight: 5,
    };
    publish(fixture, 0, word);
    publish(fixture, gate_scope, word);
    fixture.writers.tick.beat(fixture.clock.now_ns());
    word
}

#[test]
fn a_lane_of_a_calm_seat_sums_what_its_scopes_hold_before_one_in_64_admissions() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 1);
    calm(&mut fixture, 1);
    let mut admitted = 0;
    while ask(&fixture, &gate, slot, Request::default()).is_ok() {
        admitted += 1;
    }
    // The first looks, at nothing in flight. The next look finds too many, and so do all that follow.
    assert_eq!(admitted, 64);
    for _again in 0..3 {
        ask(&fixture, &gate, slot, Request::default()).unwrap_err();
    }
}

#[test]
fn a_seat_is_calm_no_longer_than_its_scopes_its_agent_and_its_process_are() {
    type End = fn(&mut Fixture, ScopeWord);
    let ends: [(&str, End); 4] = [
        ("the host", |fixture, word| {
            publish(fixture, 0, ScopeWord { near: true, ..word });
        }),
        ("its scope", |fixture, word| {
            publish(fixture, 1, ScopeWord { near: true, ..word });
        }),
        ("it moved", |fixture, word| {
            publish(fixture, 2, ScopeWord { near: true, ..word });
            fixture.writers.seats.move_to_scope(1, 2);
        }),
        ("a beat later", |fixture, word| {
            publish(fixture, 1, ScopeWord { near: true, ..word });
            fixture.writers.tick.beat(fixture.clock.now_ns());
        }),
    ];
    for (what, end) in ends {
        let mut fixture = Fixture::new(LossMode::Open);
        let slot = fixture.resource("r", ResourceRecord::default());
        let gate = fixture.gate(1, 1);
        let word = calm(&mut fixture, 1);
        let enter = |fixture: &Fixture| ask(fixture, &gate, slot, Request::default());
        for _request in 0..40 {
            let _pass = enter(&fixture).unwrap();
        }
        end(&mut fixture, word);
        assert!(enter(&fixture).is_err(), "{what}: 40 of 10 are in flight");
    }
}

#[test]
fn a_calm_seat_notices_that_its_agent_is_silent_or_that_it_was_taken_away() {
    let mut fixture = Fixture::new(LossMode::Closed);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 1);
    calm(&mut fixture, 1);
    let enter = |fixture: &Fixture| gate.enter(&fixture.clock, LANE, slot, Request::default());
    assert!(matches!(
        enter(&fixture),
        Step::Done(GateVerdict::Admitted(_))
    ));
    fixture
        .clock
        .advance(TIME_TO_LIVE_NS + GRACE_NS + 2_000_000);
    assert!(matches!(
        enter(&fixture),
        Step::Done(GateVerdict::Refused(refusal)) if refusal.reason == Reason::AgentLost
    ));
    calm(&mut fixture, 1);
    assert!(matches!(
        enter(&fixture),
        Step::Done(GateVerdict::Admitted(_))
    ));
    fixture.writers.seats.revoke(1);
    assert!(matches!(enter(&fixture), Step::Done(GateVerdict::Stale)));
    // Not even as somebody else's.
    let _next = fixture.gate(1, 1);
    calm(&mut fixture, 1);
    assert!(matches!(enter(&fixture), Step::Done(GateVerdict::Stale)));
}

#[test]
fn field_o7_a_scope_that_observes_counts_what_it_would_refuse_and_admits_it() {
    let mut fixture = Fixture::new(LossMode::Open);
    let slot = fixture.resource("r", ResourceRecord::default());
    let gate = fixture.gate(1, 1);
    let ledger = *gate.ledger();
    for state in [
        ScopeState::Healthy,
        ScopeState::Overload,
        ScopeState::Reject,
    ] {
        let mut word = ScopeWord {
            state,
            short: true,
            near: true,
            observe: true,
            entry: 10,
            tight: 5,
        };
        publish(&mut fixture, 1, word);
        let before = ledger.observed(1);
        assert_eq!(held_when_refused(&fixture, &gate, slot, Some(10)), None);
        assert_eq!(ledger.observed(1) - before, 1, "{state:?}");
        word.observe = false;
        publish(&mut fixture, 1, word);
        let refused = held_when_refused(&fixture, &gate, slot, Some(10));
        assert!(refused.is_some(), "{state:?}");
        assert_eq!(ledger.observed(1) - before, 1, "{state:?}");
    }
    assert_eq!(ledger.observed(0), 0, "the host admits");
    let (state, observe) = (ScopeState::Reject, true);
    let open = ScopeWord::OPEN;
    publish(
        &mut fixture,
        1,
        ScopeWord {
            state,
            observe,
            ..open
        },
    );
    let before = (ledger.observed(1), ledger.one_shots(1));
    gate.admit_one_shot(&fixture.clock, 1)
        .expect("it only observes");
    let after = (ledger.observed(1), ledger.one_shots(1));
    assert_eq!(after, (before.0 + 1, before.1 + 1));
}
