//! What is overload, what is none, and what it is put down to.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::{Evidence, Law, LawSettings, Sample, Watch};

use super::{TICK_NS, full_load, half_load, replay, warm};

#[test]
fn a_queue_at_a_short_cpu_is_overload_and_names_the_cpu() {
    let mut law = warm();
    let published = replay(&mut law, &full_load(), 2);
    assert_eq!(published.state, ScopeState::Overload);
    assert_eq!(published.cause, Cause::Cpu);
    assert!(published.evidence.has(Evidence::RUN_QUEUE));
    assert!(published.tight < published.entry);
}

#[test]
fn decisions_that_refuse_far_over_the_entry_limit_are_overload_at_the_next_tick() {
    let mut law = warm();
    // They keep the count just under twice the entry limit; the CPU was full for half the tick only.
    let far = 2 * law.published().entry - 3;
    let piled_up = |held, shed| Sample {
        inflight: held,
        passed: u64::from(held),
        busy: Some(0.7),
        waiters: Some(1.0),
        shed,
        ..half_load()
    };
    // It has piled up more slowly than a surge would.
    for held in (1..=far).step_by(20) {
        let published = law.step(&piled_up(held, 0), &LawSettings::default());
        assert_eq!(published.state, ScopeState::Healthy, "{held}");
    }
    let published = law.step(&piled_up(far, 90), &LawSettings::default());
    assert_eq!(published.state, ScopeState::Overload);
}

#[test]
fn a_surge_to_the_entry_limit_is_overload_without_a_short_cpu() {
    let settings = LawSettings::default();
    let entry = warm().published().entry;
    let step = |held, shed| {
        let sample = Sample {
            inflight: held,
            passed: 50,
            shed,
            ..half_load()
        };
        warm().step(&sample, &settings)
    };
    // The capacity is 200 a second: 24 in a tick are the mark. Decisions hold the count at the limit.
    let published = step(entry, 60);
    assert_eq!(published.state, ScopeState::Overload);
    assert_eq!(published.cause, Cause::InFlight);
    assert_eq!(step(entry * 3 / 4 + 1, 0).state, ScopeState::Overload);
    assert_eq!(step(entry / 2, 60).state, ScopeState::Healthy, "no queue");
    // Those whom a service waits for may be as slow as they like.
    let mut law = warm();
    for held in (0..60).step_by(20) {
        let stuck = Sample {
            inflight: held,
            passed: 20,
            successes: 0,
            rt_ns: 0,
            ..half_load()
        };
        let published = law.step(&stuck, &settings);
        assert_eq!(published.state, ScopeState::Healthy, "{held}");
    }
}

#[test]
fn what_is_not_finite_is_not_measured_and_opens() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let sample = Sample {
            tick_ns: 0,
            cpus: Some(odd),
            busy: Some(odd),
            own: Some(odd),
            waiters: Some(odd),
            psi_cpu: Some(odd),
            load_per_cpu: Some(odd),
            ..half_load()
        };
        let mut law = warm();
        assert_eq!(replay(&mut law, &sample, 100).state, ScopeState::Healthy);
        replay(&mut law, &full_load(), 3);
        let blind = Sample {
            tick_ns: TICK_NS,
            ..sample
        };
        assert_eq!(replay(&mut law, &blind, 60).state, ScopeState::Healthy);
    }
}

#[test]
fn nothing_measured_at_all_never_refuses() {
    let sample = Sample {
        tick_ns: TICK_NS,
        ..Sample::default()
    };
    let published = replay(&mut Law::default(), &sample, 100);
    assert_eq!(published.state, ScopeState::Cold);
    assert_eq!(published.word().entry, ScopeWord::LIMIT_MAX);
}

#[test]
fn three_slow_requests_a_second_are_left_alone() {
    let mut law = warm();
    let slow = Sample {
        inflight: 200,
        successes: 0,
        rt_ns: 0,
        passed: 0,
        busy: Some(1.0),
        ..half_load()
    };
    replay(
        &mut law,
        &Sample {
            inflight: 0,
            busy: Some(0.1),
            ..slow
        },
        20,
    );
    for tick in 0..100 {
        let one = u64::from(tick % 3 == 0);
        let published = law.step(
            &Sample {
                passed: one,
                ..slow
            },
            &LawSettings::default(),
        );
        assert!(
            published.watch == Watch::Rest && !published.short,
            "tick {tick}"
        );
        assert_ne!(published.cause, Cause::InFlight);
    }
}

#[test]
fn one_full_sample_among_light_ones_changes_nothing() {
    let light = Sample {
        busy: Some(0.3),
        own: Some(0.3),
        ..half_load()
    };
    let peak = Sample {
        busy: Some(1.0),
        own: Some(1.0),
        ..light
    };
    let mut law = warm();
    for _ in 0..20 {
        replay(&mut law, &light, 9);
        assert_eq!(replay(&mut law, &peak, 1).state, ScopeState::Healthy);
    }
}

#[test]
fn the_cause_is_the_most_telling_one() {
    let full = full_load();
    let cases = [
        (
            Sample {
                throttle: Some(0.8),
                throttled_time: Some(0.4),
                ..full
            },
            Cause::Quota,
        ),
        (
            Sample {
                steal: Some(0.3),
                ..full
            },
            Cause::Steal,
        ),
        (
            Sample {
                own: Some(0.2),
                ..full
            },
            Cause::Neighbour,
        ),
        (
            Sample {
                busy: Some(0.6),
                ..full
            },
            Cause::RunQueue,
        ),
        (
            Sample {
                busy: Some(0.6),
                waiters: None,
                psi_cpu: Some(0.9),
                ..full
            },
            Cause::Pressure,
        ),
        (
            Sample {
                busy: Some(0.6),
                waiters: None,
                ..full
            },
            Cause::InFlight,
        ),
    ];
    for (sample, cause) in cases {
        let published = replay(&mut warm(), &sample, 2);
        assert_eq!(
            (published.state, published.cause),
            (ScopeState::Overload, cause)
        );
    }
}

#[test]
fn the_evidence_is_named() {
    let full = replay(&mut warm(), &full_load(), 1);
    let names: Vec<_> = full.evidence.names().collect();
    assert_eq!(names, ["cpu", "run_queue"]);
    assert_eq!(warm().published().evidence.names().count(), 0);
}
