//! What is learned of a service, and the limits that follow.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::{Law, LawSettings, Sample};

use super::{TICK_NS, full_load, half_load, replay, replay_with, warm};

#[test]
fn limits_follow_capacity_and_base_time() {
    let published = *warm().published();
    // C = 10 / (0.1 s · 2 CPUs · 0.5) · 2 CPUs = 200/s, RT0 = 10 ms.
    assert!((published.capacity_qps.unwrap() - 200.0).abs() < 0.1);
    assert!((published.base_rt_s.unwrap() - 0.01).abs() < 1e-4);
    assert_eq!(published.entry, 42);
    assert_eq!(published.tight, 10);
    // 200/s + (10 − 1) / 0.2 s.
    assert_eq!(published.allowed_qps.map(f64::round), Some(245.0));
}

#[test]
fn before_the_first_sample_everything_is_admitted() {
    let published = *Law::default().published();
    assert_eq!(published.entry, ScopeWord::LIMIT_MAX);
    assert_eq!(published.allowed_qps_milli(), u64::MAX);
}

#[test]
fn a_cold_start_at_full_cpu_is_neither_shut_nor_open() {
    let first = Sample {
        successes: 0,
        rt_ns: 0,
        inflight: 10,
        busy: Some(0.95),
        ..full_load()
    };
    let published = replay(&mut Law::default(), &first, 1);
    assert_eq!(published.state, ScopeState::Cold);
    assert_eq!((published.entry, published.tight), (64, 32));
}

#[test]
fn a_cpu_that_reads_a_little_low_raises_no_limit_while_a_task_waits_for_it() {
    let overload = |waiters| {
        let mut law = warm();
        let pressed = Sample {
            busy: Some(0.95),
            own: Some(0.95),
            waiters: Some(waiters),
            shed: 100,
            ..full_load()
        };
        let begun = replay(&mut law, &pressed, 12).tight;
        (begun, replay(&mut law, &pressed, 60).tight)
    };
    // A pool of eight workers on two CPUs: six wait, never more.
    let (begun, after) = overload(6.0);
    assert_eq!(after, begun);
    let (begun, after) = overload(0.5);
    assert!(after > begun, "{begun} {after}");
}

#[test]
fn a_lucky_reply_and_fast_errors_move_the_rate_by_little() {
    // 300 ms each, 10 in each tick; then one of them takes 150 ms and 200 errors come back at once.
    let steady = Sample {
        rt_ns: 10 * 300_000_000,
        inflight: 30,
        ..half_load()
    };
    let lucky = Sample {
        rt_ns: 9 * 300_000_000 + 150_000_000,
        passed: 210,
        ..steady
    };
    let mut law = Law::default();
    let before = replay(&mut law, &steady, 50).allowed_qps.unwrap();
    replay(&mut law, &lucky, 1);
    let after = replay(&mut law, &steady, 10).allowed_qps.unwrap();
    assert!((after / before - 1.0).abs() < 0.1, "{before} to {after}");
}

#[test]
fn a_late_tick_reads_as_one_long_tick() {
    let mut law = warm();
    let late = Sample {
        tick_ns: 12 * TICK_NS,
        successes: 120,
        rt_ns: 120 * 10_000_000,
        passed: 120,
        ..half_load()
    };
    let published = replay(&mut law, &late, 3);
    assert_eq!(published.state, ScopeState::Healthy);
    assert!((published.capacity_qps.unwrap() - 200.0).abs() < 1.0);
}

#[test]
fn a_live_change_of_the_cpus_is_seen_at_the_next_tick() {
    let mut law = warm();
    let halved = Sample {
        cpus: Some(1.0),
        busy: Some(1.0),
        own: Some(1.0),
        ..half_load()
    };
    let published = replay(&mut law, &halved, 1);
    assert!((published.capacity_qps.unwrap() - 100.0).abs() < 5.0);
}

#[test]
fn the_safety_floor_holds_in_overload() {
    let mut settings = LawSettings::default();
    settings.tight.floor = 50;
    settings.rate.floor_qps = 70.0;
    let mut law = warm();
    let published = replay_with(&mut law, &full_load(), 50, &settings);
    assert_eq!(published.state, ScopeState::Overload);
    assert!(published.tight >= 50);
    assert!(published.allowed_qps.unwrap() >= 70.0);
}

#[test]
fn when_every_request_times_out_the_limits_stay_and_it_recovers() {
    let mut law = warm();
    replay(&mut law, &full_load(), 3);
    let stuck = Sample {
        successes: 0,
        rt_ns: 0,
        shed: 40,
        passed: 0,
        inflight: 40,
        ..full_load()
    };
    let during = replay(&mut law, &stuck, 300);
    assert_eq!(during.state, ScopeState::Overload);
    assert!(during.tight >= 8, "the slack stays");
    assert_eq!(
        replay(&mut law, &half_load(), 20).state,
        ScopeState::Healthy
    );
}

#[test]
fn callers_without_permits_are_held_by_the_rate() {
    // Nothing in flight is ever seen; the CPU is full at 200 admitted in a second.
    let one_shots = Sample {
        inflight: 0,
        successes: 0,
        rt_ns: 0,
        passed: 20,
        one_shot: 20,
        busy: Some(1.0),
        own: None,
        waiters: None,
        ..half_load()
    };
    let published = replay(&mut Law::default(), &one_shots, 50);
    assert_eq!(published.state, ScopeState::Overload);
    assert!((published.capacity_qps.unwrap() - 200.0).abs() < 1.0);
    // The CPU is full at that rate: it goes down until it no longer is.
    let allowed_qps = published.allowed_qps.unwrap();
    assert!((20.0..200.0).contains(&allowed_qps), "{allowed_qps}");
}
