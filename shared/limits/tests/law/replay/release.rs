//! When overload ends, and when it is said to be of no use.

use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::{Enforcement, Law, LawSettings, Sample};

use super::{full_load, half_load, replay, replay_with, warm};

#[test]
fn shedding_that_cannot_help_says_so_and_rests() {
    let mut law = warm();
    replay(&mut law, &full_load(), 20);
    // The CPU stays at 95 % while a tenth is admitted: others use it.
    let helpless = Sample {
        inflight: 20,
        successes: 2,
        rt_ns: 2 * 10_000_000,
        passed: 2,
        shed: 18,
        busy: Some(0.95),
        own: Some(0.1),
        waiters: Some(1.0),
        ..half_load()
    };
    let published = replay(&mut law, &helpless, 80);
    assert!(published.ineffective);
    assert_eq!(
        (published.state, published.cause),
        (ScopeState::Overload, Cause::Neighbour)
    );
    assert_eq!(published.tight, published.entry);
    let healed = replay(&mut law, &half_load(), 30);
    assert!(!healed.ineffective);
    assert_eq!(healed.state, ScopeState::Healthy);
}

#[test]
fn heavy_own_work_is_not_called_ineffective() {
    let mut law = warm();
    let heavy = Sample {
        successes: 4,
        rt_ns: 4 * 500_000_000,
        shed: 30,
        ..full_load()
    };
    replay(&mut law, &full_load(), 20);
    assert!(!replay(&mut law, &heavy, 100).ineffective);
}

#[test]
fn quick_reentries_ask_for_more_healthy_ticks() {
    let mut law = warm();
    let mut needed = Vec::new();
    for _ in 0..4 {
        needed.push(replay(&mut law, &full_load(), 5).healthy_needed);
        assert_eq!(
            replay(&mut law, &half_load(), 30).state,
            ScopeState::Healthy
        );
    }
    assert_eq!(needed, [5, 10, 20, 20]);
}

#[test]
fn field_l13_a_cold_scope_at_ten_times_its_capacity_changes_its_state_once() {
    let mut law = Law::default();
    let crowd = Sample {
        shed: 180,
        ..full_load()
    };
    let mut changes = 0;
    for _tick in 0..100 {
        let before = law.published().state;
        changes += u32::from(law.step(&crowd, &LawSettings::default()).state != before);
    }
    assert_eq!(law.published().state, ScopeState::Overload);
    assert_eq!(changes, 1);
    assert_eq!(law.published().healthy_needed, 5);
}

#[test]
fn a_dead_downstream_changes_the_state_once_and_answers_end_it() {
    let mut law = warm();
    let dead = Sample {
        inflight: 400,
        successes: 0,
        rt_ns: 0,
        passed: 1,
        shed: 9,
        busy: Some(0.05),
        own: Some(0.05),
        ..half_load()
    };
    assert_eq!(replay(&mut law, &dead, 2).state, ScopeState::Overload);
    // Held to the limit, far less is in flight; that alone is no end.
    let held = Sample {
        inflight: 20,
        ..dead
    };
    for _tick in 0..300 {
        assert_eq!(replay(&mut law, &held, 1).state, ScopeState::Overload);
    }
    assert_eq!(
        replay(&mut law, &half_load(), 30).state,
        ScopeState::Healthy
    );
}

#[test]
fn field_o7_a_law_that_observes_judges_as_ever_and_claims_no_effect() {
    let settings = LawSettings {
        enforcement: Enforcement::Observe,
        ..LawSettings::default()
    };
    let mut law = warm();
    let published = replay_with(&mut law, &full_load(), 20, &settings);
    assert_eq!(published.state, ScopeState::Overload);
    assert!(published.word().observe);
    let helpless = Sample {
        successes: 2,
        passed: 2,
        own: Some(0.1),
        ..full_load()
    };
    let published = replay_with(&mut law, &helpless, 100, &settings);
    assert!(!published.ineffective, "nothing was refused");
}
