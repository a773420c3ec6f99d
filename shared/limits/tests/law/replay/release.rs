//! When overload ends, and when it is said to be of no use.

use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::Sample;

use super::{full_load, half_load, replay, warm};

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
