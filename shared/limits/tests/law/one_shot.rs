//! Callers without permits under the law: what the allowed QPS lets through meets the capacity, though
//! nothing of theirs is ever in flight.
#![expect(
    clippy::expect_used,
    reason = "a count of a tick that is not small must fail loudly"
)]

use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::{Law, LawSettings, Sample};

/// Work that one tick does, requests.
const DONE: f64 = 20.0;

/// Runs a service of 200 requests a second at 400 offered, for a minute. Returns the mean rate that was
/// admitted, and the most that waited, over the last half.
fn minute(queue_readable: bool) -> (f64, f64) {
    let mut law = Box::<Law>::default();
    let half_load = Sample {
        tick_ns: 100_000_000,
        cpus: Some(2.0),
        passed: 10,
        one_shot: 10,
        busy: Some(0.5),
        waiters: queue_readable.then_some(0.0),
        ..Sample::default()
    };
    for _tick in 0..50 {
        law.step(&half_load, &LawSettings::default());
    }
    let (mut waiting, mut admitted, mut most) = (0.0_f64, 0_u64, 0.0_f64);
    for tick in 0..600 {
        let published = *law.published();
        // The gate holds them to the rate in overload only.
        let allowed = match published.state {
            ScopeState::Overload => published.allowed_qps.unwrap_or(f64::INFINITY) * 0.1,
            ScopeState::Healthy | ScopeState::Cold | ScopeState::Reject => f64::INFINITY,
        };
        let passed = (0..40)
            .filter(|number| f64::from(*number) < allowed)
            .count();
        let passed = u64::try_from(passed).expect("it is small");
        waiting += f64::from(u32::try_from(passed).expect("it is small"));
        let busy = (waiting / DONE).min(1.0);
        waiting = (waiting - DONE).max(0.0);
        law.step(
            &Sample {
                passed,
                one_shot: passed,
                shed: 40 - passed,
                busy: Some(busy),
                waiters: queue_readable.then_some(waiting),
                ..half_load
            },
            &LawSettings::default(),
        );
        if tick >= 300 {
            admitted += passed;
            most = most.max(waiting);
        }
    }
    let admitted = f64::from(u32::try_from(admitted).expect("it is small"));
    (admitted / 30.0, most)
}

#[test]
fn the_allowed_rate_meets_the_capacity_whether_a_queue_can_be_read_or_not() {
    for queue_readable in [true, false] {
        let (admitted_qps, most_waiting) = minute(queue_readable);
        let told = format!("{queue_readable}: {admitted_qps:.0}/s, {most_waiting:.0} waited");
        assert!((170.0..=202.0).contains(&admitted_qps), "{told}");
        assert!(most_waiting <= 40.0, "{told}: 200 ms");
    }
}
