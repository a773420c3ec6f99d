//! What a decision costs beside other libraries, in one run: `cargo bench --bench beside`.
//!
//! | group | what each side does |
//! |---|---|
//! | `bare_flow` | one flow check that passes: clock, window, nothing else |
//! | `no_rule` | enter + exit of a resource without rules |
//! | `flow` | enter + exit behind one flow rule that never refuses |
//! | `flow_breaker` | the same with a breaker that stays closed |
//! | `refused` | one enter that a flow rule refuses |
//!
//! Tidegate's decisions are those of a process with a seat, on pages as an agent publishes them: they
//! count for every process of the host. The others count for one process.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use governor::clock::{DefaultClock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use sentinel_core::base::TrafficType;
use sentinel_core::{EntryBuilder, circuitbreaker, flow as sentinel_flow};
use tidegate_abi::decision::Outcome;
use tidegate_decisions::{BenchPages, NEVER_REACHED, breaker, enter, exit, flow};
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_segment::board::{ClockSource, Slot};
use tidegate_segment::clock::{Calibration, Clock, monotonic_ns, read_both};
use tidegate_segment::gate::Gate;

const NEVER_SLOW: BreakerTrip = BreakerTrip::SlowRatio {
    max_rt_ns: 3_600_000_000_000,
    ratio: 0.5,
};

/// The time stamp counter, calibrated over a few milliseconds.
fn counter() -> ClockSource {
    let first = read_both();
    while monotonic_ns() < first.ns + 20_000_000 {}
    let calibration = Calibration::between(first, read_both()).expect("a counter that advances");
    ClockSource::Counter(calibration)
}

fn bare_flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bare_flow");
    let quota = Quota::per_second(NonZeroU32::new(NEVER_REACHED).expect("more than none"));

    let mut window = |name: &str, source: ClockSource| {
        let mut pages = BenchPages::by(source, monotonic_ns());
        let slot = pages.plain("flow", Some(NEVER_REACHED));
        let (board, node) = pages.window(slot);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let now_ns = board.now_ns();
                match node.admit_at_once(now_ns, 1, black_box(NEVER_REACHED)) {
                    Some(admission) => admission.admitted(),
                    None => node.admit(&board, now_ns, 1, NEVER_REACHED).admitted(),
                }
            });
        });
    };
    window("tidegate/counter", counter());
    window("tidegate/monotonic", ClockSource::Monotonic);

    // Quanta reads the time stamp counter where that can be trusted.
    let by_counter = RateLimiter::direct_with_clock(quota, DefaultClock::default());
    group.bench_function("governor/counter", |bencher| {
        bencher.iter(|| by_counter.check().is_ok());
    });
    let by_kernel: RateLimiter<_, _, _, NoOpMiddleware<_>> =
        RateLimiter::direct_with_clock(quota, MonotonicClock);
    group.bench_function("governor/monotonic", |bencher| {
        bencher.iter(|| by_kernel.check().is_ok());
    });
    group.finish();
}

/// Enter + exit, or a refused enter.
fn tidegate(gate: &Gate, slot: Slot) -> bool {
    let ticket = enter(gate, slot);
    if let Some(ticket) = &ticket {
        exit(gate, ticket, Outcome::Ok);
    }
    ticket.is_some()
}

/// The same by the other engine.
fn sentinel(resource: &str) -> bool {
    let builder = EntryBuilder::new(resource.to_owned()).with_traffic_type(TrafficType::Outbound);
    let entry = builder.build();
    if let Ok(entry) = &entry {
        entry.exit();
    }
    entry.is_ok()
}

fn sentinel_rules() {
    let qps = |resource: &str, threshold: f64| {
        Arc::new(sentinel_flow::Rule {
            resource: resource.to_owned(),
            threshold,
            stat_interval_ms: 1000,
            ..sentinel_flow::Rule::default()
        })
    };
    let never_reached = f64::from(NEVER_REACHED);
    sentinel_flow::load_rules(vec![
        qps("flow", never_reached),
        qps("flow_breaker", never_reached),
        qps("refused", 0.0),
    ]);
    circuitbreaker::load_rules(vec![Arc::new(circuitbreaker::Rule {
        resource: "flow_breaker".to_owned(),
        strategy: circuitbreaker::BreakerStrategy::SlowRequestRatio,
        retry_timeout_ms: 3_600_000,
        min_request_amount: 5,
        stat_interval_ms: 1000,
        max_allowed_rt_ms: 3_600_000,
        threshold: 0.5,
        ..circuitbreaker::Rule::default()
    })]);
}

fn decisions(criterion: &mut Criterion) {
    sentinel_core::init_default().expect("defaults that its own check allows");
    sentinel_rules();
    let mut pages = BenchPages::by(counter(), monotonic_ns());
    let slots = [
        ("no_rule", pages.plain("no_rule", None), true),
        ("flow", pages.plain("flow", Some(NEVER_REACHED)), true),
        (
            "flow_breaker",
            pages.ruled("flow_breaker", &[flow(NEVER_REACHED), breaker(NEVER_SLOW)]),
            true,
        ),
        ("refused", pages.plain("refused", Some(0)), false),
    ];
    let gate = pages.gate();
    for (name, slot, admits) in slots {
        // The first call of a resource goes the long way, which gives no ticket.
        for _call in 0..64 {
            black_box(tidegate(&gate, slot));
        }
        assert_eq!(tidegate(&gate, slot), admits, "tidegate, {name}");
        assert_eq!(sentinel(name), admits, "sentinel-core, {name}");
        let mut group = criterion.benchmark_group(name);
        group.bench_function("tidegate", |bencher| bencher.iter(|| tidegate(&gate, slot)));
        group.bench_function("sentinel-core", |bencher| bencher.iter(|| sentinel(name)));
        group.finish();
    }
}

criterion_group!(benches, bare_flow, decisions);
criterion_main!(benches);
