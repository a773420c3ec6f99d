//! What holds for any sequence of samples, however odd.

use proptest::prelude::*;
use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::settings::ThreadsSettings;
use tidegate_limits::law::{Law, LawSettings, Sample, ThresholdAction};

fn odd_number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        6 => (0.0..1.5).prop_map(Some),
        2 => (0.0..1e12).prop_map(Some),
        2 => any::<f64>().prop_map(Some),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).prop_map(Some),
        2 => Just(None),
    ]
}

fn odd_count() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..200_u64, 1 => any::<u64>()]
}

prop_compose! {
    fn odd_sample()(
        (tick_ns, successes, rt_ns) in (odd_count(), odd_count(), any::<u64>()),
        (passed, one_shot, shed) in (odd_count(), odd_count(), odd_count()),
        (inflight, accept_queue, threads) in (0..2000_u32, any::<Option<u32>>(), any::<Option<u32>>()),
        (cpus, busy, own, waiters) in (odd_number(), odd_number(), odd_number(), odd_number()),
        (throttle, steal, psi_cpu, load_per_cpu) in (odd_number(), odd_number(), odd_number(), odd_number()),
        (gc_share, full_gc, heap_used) in (odd_number(), any::<Option<u32>>(), odd_number()),
    ) -> Sample {
        Sample {
            tick_ns, cpus, inflight, accept_queue, successes, rt_ns, passed, one_shot, shed, busy, own,
            waiters, throttle, throttled_time: throttle, psi_cpu, steal, gc_share, full_gc, heap_used, threads,
            load_per_cpu, capped: 0,
        }
    }
}

/// Ticks of any length in which a rate is kept, with an odd one among them now and then.
fn mostly_sound() -> impl Strategy<Value = Sample> {
    let sound = (odd_sample(), 1..400_u64, 1..50_u64).prop_map(|(odd, rate, rt_ms)| Sample {
        tick_ns: 100_000_000,
        cpus: Some(2.0),
        successes: rate,
        passed: rate,
        rt_ns: rate * rt_ms * 1_000_000,
        ..odd
    });
    prop_oneof![4 => sound, 1 => odd_sample()]
}

fn settings() -> impl Strategy<Value = LawSettings> {
    (0..100_u32, any::<bool>()).prop_map(|(floor, reject)| {
        let mut settings = LawSettings::default();
        settings.tight.floor = floor;
        settings.threads = Some(ThreadsSettings::over(1000));
        if reject {
            settings.marks.action = ThresholdAction::Reject;
        }
        settings
    })
}

/// A healthy service of so many requests a tick on two CPUs, all of whose CPU time they take. So what is
/// done in a tick is its capacity in every state.
fn healthy(rate: u64, rt_ms: u64) -> Sample {
    Sample {
        tick_ns: 100_000_000,
        cpus: Some(2.0),
        inflight: 1,
        successes: rate,
        rt_ns: rate * rt_ms * 1_000_000,
        passed: rate,
        busy: Some(0.5),
        own: Some(1.0),
        waiters: Some(0.0),
        ..Sample::default()
    }
}

/// What must not grow while nothing succeeds: capacity, base time and, within an overload, the limit.
#[derive(Debug, Clone, Copy)]
struct Learnt {
    capacity_qps: f64,
    base_rt_s: f64,
    tight: u32,
    overload: bool,
}

impl Learnt {
    fn of(law: &Law) -> Self {
        let published = law.published();
        Self {
            capacity_qps: published.capacity_qps.unwrap_or(0.0),
            base_rt_s: published.base_rt_s.unwrap_or(0.0),
            tight: published.tight,
            // One that has ended and only stays for want of changes has the entry limit.
            overload: published.state == ScopeState::Overload && !published.resting,
        }
    }

    fn has_grown_since(&self, before: &Self) -> bool {
        self.capacity_qps > before.capacity_qps
            || self.base_rt_s > before.base_rt_s
            || (self.overload && before.overload && self.tight > before.tight)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn field_l1_without_successes_nothing_that_was_learnt_grows_nor_does_the_limit(
        (rate, rt_ms) in (1..100_u64, 1..400_u64),
        (before, shed) in (0..120_u32, 0..60_u64),
        incident in prop::collection::vec(mostly_sound(), 1..300),
    ) {
        let mut settings = LawSettings::default();
        settings.marks.cpu = None;
        settings.marks.load = None;
        let mut law = Law::default();
        for _tick in 0..before {
            law.step(&healthy(rate, rt_ms), &settings);
        }
        for _tick in 0..before / 3 {
            let crowd = Sample { inflight: 5000, busy: Some(0.7), shed, ..healthy(rate, rt_ms * 20) };
            law.step(&crowd, &settings);
        }
        let mut last = Learnt::of(&law);
        for odd in incident {
            let sample = Sample {
                successes: 0,
                rt_ns: 0,
                one_shot: 0,
                cpus: Some(2.0),
                shed: odd.shed % 1000,
                inflight: odd.inflight,
                ..odd
            };
            law.step(&sample, &settings);
            let now = Learnt::of(&law);
            prop_assert!(!now.has_grown_since(&last), "{now:?} after {last:?}");
            last = now;
        }
    }

    #[test]
    fn field_l2_slow_successes_raise_the_base_by_a_third_of_a_percent_a_second_at_most(
        rate in 5..100_u64,
        base_ms in 1..100_u64,
        slow in prop::collection::vec((1..100_u64, 1..1000_u64), 1..300),
    ) {
        let settings = LawSettings::default();
        let mut law = Law::default();
        for _tick in 0..110 {
            law.step(&healthy(rate, base_ms), &settings);
        }
        let base = law.published().base_rt_s.expect("it is warm");
        for (tick, (successes, times)) in (1_u32..).zip(slow) {
            let sample = Sample { successes, ..healthy(successes, base_ms * times) };
            law.step(&sample, &settings);
            let now = law.published().base_rt_s.expect("it is warm");
            let most = base * (f64::from(tick) / 2400.0).exp2() * 1.000_001;
            prop_assert!(now <= most, "{now} s in tick {tick}; at most {most}");
        }
    }

    #[test]
    fn limits_are_finite_ordered_and_over_the_floor(
        samples in prop::collection::vec(mostly_sound(), 1..250),
        settings in settings(),
    ) {
        let mut law = Law::default();
        for sample in &samples {
            let published = law.step(sample, &settings);
            prop_assert!(published.tight >= settings.tight.floor.max(1));
            prop_assert!(published.tight <= published.entry);
            prop_assert!(published.demand.is_finite());
            for number in [published.capacity_qps, published.base_rt_s].into_iter().flatten() {
                prop_assert!(number.is_finite() && number >= 0.0, "{number}");
            }
            if let Some(allowed_qps) = published.allowed_qps {
                prop_assert!(allowed_qps.is_finite());
                prop_assert!(allowed_qps >= settings.rate.floor_qps);
            }
        }
    }

    #[test]
    fn the_limit_never_grows_while_tasks_queue_for_a_cpu(
        (rate, rt_ms) in (5..100_u64, 1..100_u64),
        slack_ticks in 0..60_u32,
        queueing in prop::collection::vec((0..100_u64, 0.0..1.0_f64), 20..100),
    ) {
        let settings = LawSettings::default();
        let calm = healthy(rate, rt_ms);
        let mut law = Law::default();
        for _tick in 0..50 {
            law.step(&calm, &settings);
        }
        let crowd = Sample { inflight: 5000, waiters: Some(5000.0), busy: Some(1.0), ..calm };
        for _tick in 0..3 {
            law.step(&crowd, &settings);
        }
        // Slack feedback has raised the limit by any amount.
        for _tick in 0..slack_ticks {
            law.step(&Sample { shed: 50, busy: Some(0.3), ..calm }, &settings);
        }
        prop_assert_eq!(law.published().state, ScopeState::Overload);
        let mut last = law.published().tight;
        for (shed, busy) in queueing {
            let published = law.step(&Sample { shed, busy: Some(busy), ..crowd }, &settings);
            prop_assert!(published.tight <= last, "{} after {last}", published.tight);
            last = published.tight;
        }
    }
}

/// A second of a service on two CPUs, in tenths: calm, crowded, refusing, waiting for others, idle.
fn scenes() -> [Sample; 5] {
    let calm = Sample {
        tick_ns: 100_000_000,
        cpus: Some(2.0),
        inflight: 4,
        accept_queue: Some(0),
        successes: 20,
        rt_ns: 20 * 10_000_000,
        passed: 20,
        busy: Some(0.5),
        own: Some(0.5),
        waiters: Some(0.0),
        ..Sample::default()
    };
    let crowded = Sample {
        inflight: 300,
        successes: 40,
        rt_ns: 40 * 100_000_000,
        passed: 80,
        busy: Some(1.0),
        own: Some(1.0),
        waiters: Some(50.0),
        ..calm
    };
    let refusing = Sample {
        inflight: 20,
        passed: 40,
        shed: 40,
        waiters: Some(3.0),
        ..crowded
    };
    let waiting = Sample {
        inflight: 20,
        successes: 4,
        rt_ns: 4 * 2_000_000_000,
        passed: 4,
        busy: Some(0.1),
        own: Some(0.1),
        ..calm
    };
    let idle = Sample {
        tick_ns: calm.tick_ns,
        cpus: Some(2.0),
        busy: Some(0.0),
        own: Some(0.0),
        waiters: Some(0.0),
        ..Sample::default()
    };
    [calm, crowded, refusing, waiting, idle]
}

/// A quarter of a tick.
fn quarter(tick: &Sample) -> Sample {
    Sample {
        tick_ns: tick.tick_ns / 4,
        successes: tick.successes / 4,
        rt_ns: tick.rt_ns / 4,
        passed: tick.passed / 4,
        shed: tick.shed / 4,
        ..*tick
    }
}

proptest! {
    /// Windows are times: whatever a tick is cut into, the law comes to the same.
    #[test]
    fn field_l14_in_quarters_of_ticks_the_law_decides_as_in_whole_ones(
        scenes in prop::collection::vec(prop::sample::select(scenes().to_vec()), 1..9)
    ) {
        let settings = LawSettings::default();
        let (mut whole, mut quarters) = (Law::default(), Law::default());
        for (number, scene) in scenes.iter().enumerate() {
            for _tick in 0..40 {
                whole.step(scene, &settings);
                for _quarter in 0..4 {
                    quarters.step(&quarter(scene), &settings);
                }
            }
            let (one, other) = (whole.published(), quarters.published());
            prop_assert_eq!(one.state, other.state, "scene {}", number);
            prop_assert_eq!(one.cause, other.cause, "scene {}", number);
            let near = |one: u32, other: u32| one.abs_diff(other) <= 2 + one / 5;
            prop_assert!(near(one.entry, other.entry), "{:?} {:?}", one, other);
        }
    }
}
