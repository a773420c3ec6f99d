//! Sentinel's plain check in the place of the law.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::{Law, LawChoice, LawSettings, PublishedLimits, Sample};
use tidegate_limits::threshold;

const TICK_NS: u64 = 100_000_000;

fn settings() -> LawSettings {
    let mut settings = LawSettings {
        kind: LawChoice::Sentinel,
        ..LawSettings::default()
    };
    settings.marks.load = Some(threshold::ThresholdSettings::load());
    settings
}

/// A tick of a service that does 100 requests a second of 20 ms each.
fn sample(busy: f64, load_per_cpu: f64) -> Sample {
    Sample {
        tick_ns: TICK_NS,
        cpus: Some(2.0),
        inflight: 50,
        successes: 10,
        rt_ns: 10 * 20_000_000,
        passed: 10,
        busy: Some(busy),
        load_per_cpu: Some(load_per_cpu),
        ..Sample::default()
    }
}

fn run(law: &mut Law, sample: &Sample, ticks: u32) -> PublishedLimits {
    for _tick in 0..ticks {
        law.step(sample, &settings());
    }
    *law.published()
}

#[test]
fn cpu_over_the_mark_refuses_at_once_and_under_it_admits_at_once() {
    let mut law = Law::default();
    for (busy, state) in [
        (0.85, ScopeState::Healthy),
        (0.86, ScopeState::Reject),
        (0.85, ScopeState::Healthy),
        (1.0, ScopeState::Reject),
    ] {
        let published = run(&mut law, &sample(busy, 0.5), 10);
        assert_eq!(published.state, state, "{busy}");
        let cause = if state == ScopeState::Reject {
            Cause::Cpu
        } else {
            Cause::None
        };
        assert_eq!((published.cause, published.allowed_qps), (cause, None));
    }
}

#[test]
fn a_sample_is_the_mean_of_a_second() {
    let mut law = Law::default();
    run(&mut law, &sample(1.0, 0.5), 8);
    assert_eq!(
        run(&mut law, &sample(0.2, 0.5), 1).state,
        ScopeState::Healthy
    );
    // 0.84 on average, although most ticks were full.
    assert_eq!(
        run(&mut law, &sample(0.2, 0.5), 1).state,
        ScopeState::Healthy
    );
    run(&mut law, &sample(1.0, 0.5), 9);
    assert_eq!(
        run(&mut law, &sample(0.2, 0.5), 1).state,
        ScopeState::Reject
    );
}

#[test]
fn load_over_the_mark_admits_what_best_rate_and_least_time_carry() {
    let mut law = Law::default();
    assert_eq!(
        run(&mut law, &sample(0.5, 1.0), 10).state,
        ScopeState::Healthy
    );
    let published = run(&mut law, &sample(0.5, 1.1), 10);
    assert_eq!(published.state, ScopeState::Overload);
    assert_eq!(published.cause, Cause::Load);
    // 100 a second for 20 ms are two: a third is refused only when more than two are in flight.
    assert_eq!((published.tight, published.allowed_qps), (3, Some(100.0)));
    assert_eq!(published.word().tight, 3);
    let published = run(&mut law, &sample(0.5, 0.9), 10);
    assert_eq!(published.word().tight, ScopeWord::LIMIT_MAX);
    assert!(ScopeWord::is_open(published.word().pack()));
}

#[test]
fn without_completions_five_seconds_stand_for_the_least_time_and_one_may_always_run() {
    let mut law = Law::default();
    let stuck = Sample {
        successes: 0,
        rt_ns: 0,
        ..sample(0.5, 2.0)
    };
    // At least one success a bucket is assumed: 2 a second for 5 s.
    assert_eq!(run(&mut law, &stuck, 10).tight, 11);
    let quick = Sample {
        successes: 1,
        rt_ns: 1_000,
        ..sample(0.5, 2.0)
    };
    assert_eq!(run(&mut law, &quick, 10).tight, 2);
}

#[test]
fn what_is_not_measured_refuses_nobody() {
    let mut law = Law::default();
    let blind = Sample {
        busy: None,
        load_per_cpu: Some(f64::NAN),
        ..sample(0.0, 0.0)
    };
    run(&mut law, &sample(1.0, 5.0), 10);
    let published = run(&mut law, &blind, 10);
    assert_eq!(published.state, ScopeState::Healthy);
}

#[test]
fn marks_that_are_off_are_not_looked_at() {
    let mut off = settings();
    (off.marks.cpu, off.marks.load) = (None, None);
    let mut law = Law::default();
    for _tick in 0..20 {
        law.step(&sample(1.0, 9.0), &off);
    }
    assert_eq!(law.published().state, ScopeState::Healthy);
}
