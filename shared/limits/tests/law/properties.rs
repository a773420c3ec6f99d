//! What holds for any sequence of samples, however odd.

use proptest::prelude::*;
use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::settings::Threads;
use tidegate_limits::law::{Action, Law, Sample, Settings};

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
        (gc_share, full_gc) in (odd_number(), any::<Option<u32>>()),
    ) -> Sample {
        Sample {
            tick_ns, cpus, inflight, accept_queue, successes, rt_ns, passed, one_shot, shed, busy, own,
            waiters, throttle, throttled_time: throttle, psi_cpu, steal, gc_share, full_gc, threads,
            load_per_cpu,
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

fn settings() -> impl Strategy<Value = Settings> {
    (0..100_u32, any::<bool>()).prop_map(|(floor, reject)| {
        let mut settings = Settings::default();
        settings.tight.floor = floor;
        settings.threads = Some(Threads::over(1000));
        if reject {
            settings.marks.action = Action::Reject;
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

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
        let settings = Settings::default();
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
