//! What holds for any sequence of samples, however odd.

use proptest::prelude::*;
use tidegate_limits::law::settings::Threads;
use tidegate_limits::law::{Law, Sample, Settings};

fn odd_number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        3 => (0.0..1.5).prop_map(Some),
        1 => (0.0..1e12).prop_map(Some),
        1 => any::<f64>().prop_map(Some),
        1 => Just(None),
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
    ) -> Sample {
        Sample {
            tick_ns, cpus, inflight, accept_queue, successes, rt_ns, passed, one_shot, shed, busy, own,
            waiters, throttle, throttled_time: throttle, psi_cpu, steal, gc_share: steal, full_gc: None,
            threads, load_per_cpu,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn limits_are_finite_ordered_and_over_the_floor(
        samples in prop::collection::vec(odd_sample(), 1..150),
        floor in 0..100_u32,
    ) {
        let mut settings = Settings::default();
        settings.tight.floor = floor;
        settings.threads = Some(Threads::over(1000));
        let mut law = Law::default();
        for sample in &samples {
            let published = law.step(sample, &settings);
            prop_assert!(published.tight >= floor.max(1));
            prop_assert!(published.tight <= published.entry);
            prop_assert!(published.demand.is_finite());
            if let Some(allowed_qps) = published.allowed_qps {
                prop_assert!(allowed_qps.is_finite());
                prop_assert!(allowed_qps >= settings.rate.floor_qps);
            }
        }
    }

    #[test]
    fn the_limit_never_grows_while_tasks_queue_for_a_cpu(
        ticks in prop::collection::vec((0..100_u64, 0.0..1.0_f64), 20..100),
    ) {
        let settings = Settings::default();
        let mut law = Law::default();
        let queueing = Sample {
            tick_ns: 100_000_000,
            cpus: Some(2.0),
            inflight: 5000,
            successes: 20,
            rt_ns: 20_000_000_000,
            passed: 20,
            waiters: Some(5000.0),
            ..Sample::default()
        };
        // The rate of successes is the same, so only slack feedback could raise the limit.
        let mut last = u32::MAX;
        for (shed, busy) in ticks {
            let sample = Sample { shed, busy: Some(busy), own: Some(1.0), ..queueing };
            let published = law.step(&sample, &settings);
            if published.capacity_qps.is_some_and(|capacity| (capacity - 200.0).abs() < 1.0) {
                prop_assert!(published.tight <= last);
                last = published.tight;
            }
        }
    }
}
