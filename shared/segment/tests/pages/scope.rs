//! What the gate makes of a scope's words: limits, what counts towards them, and a surge.

use crate::fixture::{Fixture, SECOND};
use crate::gate::{LANE, ask, publish};
use tidegate_abi::board::{ScopeWord, SurgeWord};
use tidegate_abi::decision::{LossMode, Outcome, ScopeState};
use tidegate_segment::board::{Record, Slot};
use tidegate_segment::clock::Clock as _;
use tidegate_segment::gate::{Gate, Request};

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
    let slot = fixture.resource("r", Record::default());
    let gate = fixture.gate(1, 0);
    let limits = |state| ScopeWord {
        state,
        short: true,
        near: true,
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
    let slot = fixture.resource("r", Record::default());
    let gate = fixture.gate(1, 0);
    let calm = ScopeWord {
        state: ScopeState::Healthy,
        short: false,
        near: true,
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
    let slot = fixture.resource("r", Record::default());
    let gate = fixture.gate(1, 0);
    for (state, limit) in [(ScopeState::Healthy, 10), (ScopeState::Overload, 5)] {
        let limits = ScopeWord {
            state,
            short: true,
            near: true,
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
