//! Scripted samples in, state and limits out: the cases that a simulated service does not show.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};
use tidegate_limits::law::settings::Threads;
use tidegate_limits::law::{Action, Evidence, Law, Published, Sample, Settings, Watch};

const TICK_NS: u64 = 100_000_000;

/// A service on two CPUs that does 100 requests a second of 10 ms each, half busy.
fn half_load() -> Sample {
    Sample {
        tick_ns: TICK_NS,
        cpus: Some(2.0),
        inflight: 1,
        accept_queue: Some(0),
        successes: 10,
        rt_ns: 10 * 10_000_000,
        passed: 10,
        busy: Some(0.5),
        own: Some(0.5),
        waiters: Some(0.0),
        ..Sample::default()
    }
}

/// The same service with its CPUs full and 300 requests piled up.
fn full_load() -> Sample {
    Sample {
        inflight: 300,
        successes: 20,
        rt_ns: 20 * 100_000_000,
        passed: 40,
        busy: Some(1.0),
        own: Some(1.0),
        waiters: Some(50.0),
        ..half_load()
    }
}

fn replay(law: &mut Law, sample: &Sample, ticks: u32) -> Published {
    replay_with(law, sample, ticks, &Settings::default())
}

fn replay_with(law: &mut Law, sample: &Sample, ticks: u32, settings: &Settings) -> Published {
    for _ in 0..ticks {
        law.step(sample, settings);
    }
    *law.published()
}

fn warm() -> Box<Law> {
    let mut law = Box::<Law>::default();
    assert_eq!(
        replay(&mut law, &half_load(), 50).state,
        ScopeState::Healthy
    );
    law
}

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
    let held = 2 * law.published().entry - 3;
    let piled_up = |shed| Sample {
        inflight: held,
        passed: u64::from(held),
        busy: Some(0.7),
        waiters: Some(1.0),
        shed,
        ..half_load()
    };
    let mut healthy = law.clone();
    assert_eq!(
        healthy.step(&piled_up(0), &Settings::default()).state,
        ScopeState::Healthy
    );
    let published = law.step(&piled_up(90), &Settings::default());
    assert_eq!(published.state, ScopeState::Overload);
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
            &Settings::default(),
        );
        assert!(
            published.watch == Watch::Rest && !published.short,
            "tick {tick}"
        );
        assert_ne!(published.cause, Cause::InFlight);
    }
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
fn cpu_alone_acts_after_two_seconds_and_lets_go_at_the_fifth_healthy_sample() {
    let busy = Sample {
        busy: Some(0.95),
        own: Some(0.95),
        ..half_load()
    };
    let light = Sample {
        busy: Some(0.2),
        own: Some(0.2),
        ..half_load()
    };
    for (action, state) in [
        (Action::Shape, ScopeState::Overload),
        (Action::Reject, ScopeState::Reject),
    ] {
        let mut settings = Settings::default();
        settings.marks.action = action;
        let mut law = warm();
        let before = replay_with(&mut law, &busy, 19, &settings);
        assert_eq!(before.state, ScopeState::Healthy);
        let after = replay_with(&mut law, &busy, 1, &settings);
        assert_eq!((after.state, after.cause), (state, Cause::Cpu));
        assert_eq!(after.tight, after.entry, "nobody queues: the wide limit");
        assert_eq!(replay_with(&mut law, &light, 4, &settings).state, state);
        let open = replay_with(&mut law, &light, 1, &settings);
        assert_eq!(open.state, ScopeState::Healthy);
    }
}

#[test]
fn full_collections_lower_the_cpu_mark_and_name_the_cause() {
    let collecting = Sample {
        busy: Some(0.78),
        full_gc: Some(3),
        ..half_load()
    };
    let mut law = warm();
    assert_eq!(law.published().cpu_mark, Some(0.85));
    let active = replay(&mut law, &collecting, 20);
    assert_eq!(
        (active.state, active.cause),
        (ScopeState::Overload, Cause::Gc)
    );
    assert!((active.cpu_mark.unwrap() - 0.70).abs() < 1e-9);
    let calm = Sample {
        busy: Some(0.74),
        full_gc: Some(2),
        ..half_load()
    };
    let healed = replay(&mut law, &calm, 5);
    assert_eq!(
        (healed.state, healed.cpu_mark),
        (ScopeState::Healthy, Some(0.85))
    );
    let mut law = warm();
    let piled = Sample {
        inflight: 100,
        ..collecting
    };
    assert_eq!(replay(&mut law, &piled, 2).cause, Cause::Gc);
}

#[test]
fn the_evidence_is_named() {
    let full = replay(&mut warm(), &full_load(), 1);
    let names: Vec<_> = full.evidence.names().collect();
    assert_eq!(names, ["cpu", "run_queue"]);
    assert_eq!(warm().published().evidence.names().count(), 0);
}

#[test]
fn too_many_threads_halve_the_requests_in_flight_for_thirty_seconds() {
    let settings = Settings {
        threads: Some(Threads::over(150)),
        ..Settings::default()
    };
    let crowded = Sample {
        inflight: 16,
        threads: Some(200),
        ..half_load()
    };
    let mut law = warm();
    let first = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!(
        (first.state, first.cause),
        (ScopeState::Overload, Cause::Threads)
    );
    assert_eq!(first.word().tight, 8);
    let last = replay_with(&mut law, &crowded, 299, &settings);
    assert_eq!((last.cause, last.tight), (Cause::Threads, 8));
    let expired = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!(
        (expired.state, expired.cause),
        (ScopeState::Healthy, Cause::None)
    );
}

#[test]
fn too_many_threads_lower_the_limit_of_an_overload_and_keep_its_cause() {
    let settings = Settings {
        threads: Some(Threads::over(150)),
        ..Settings::default()
    };
    let mut law = warm();
    let before = replay_with(&mut law, &full_load(), 3, &settings);
    let crowded = Sample {
        inflight: 4,
        threads: Some(200),
        ..full_load()
    };
    let after = replay_with(&mut law, &crowded, 1, &settings);
    assert_eq!((after.state, after.cause), (before.state, before.cause));
    assert_eq!(after.tight, 2, "one for each CPU is left");
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
    let mut settings = Settings::default();
    settings.tight.floor = 50;
    settings.rate.floor_qps = 70.0;
    let mut law = warm();
    let published = replay_with(&mut law, &full_load(), 50, &settings);
    assert_eq!(published.state, ScopeState::Overload);
    assert!(published.tight >= 50);
    assert!(published.allowed_qps.unwrap() >= 70.0);
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
