//! What a service pays for a request, through the client against a running agent with its real scopes, beside the gate
//! alone, governor and two reads of the clock, in one run: `cargo bench --bench client`.
//!
//! | group | what is done |
//! |---|---|
//! | `no_rule`, `flow`, `flow_breaker`, `concurrency` | `enter` + `ok` behind these rules, none of which refuses |
//! | `refused` | one `enter` that a flow rule refuses |
//! | `… in overload` | the same where the scopes of the caller are in overload, and admit |
//! | `… refused by its scope` | one `enter` that a scope refuses |
//! | `threads` | `enter` + `ok` with flow rule and breaker, by so many threads on one resource: time for each |
//! | `beside` | two reads of the clock; one check of governor |
//!
//! The agent is the program that `TIDEGATE` names, or the one that was built last.

use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use governor::{Quota, RateLimiter};
use tidegate_abi::decision::Outcome;
use tidegate_client::Client;
use tidegate_decisions::agent::{
    self, BenchScopes, CASES, FLOW_BREAKER, NO_RULE, RunningAgent, ask,
};
use tidegate_decisions::{BenchPages, NEVER_REACHED, breaker, enter, exit, flow};
use tidegate_limits::breaker::trip::BreakerTrip;
use tidegate_segment::board::ClockSource;
use tidegate_segment::clock::{Calibration, monotonic_ns, read_both};

/// The time stamp counter, calibrated over a few milliseconds.
fn counter() -> ClockSource {
    let first = read_both();
    while monotonic_ns() < first.ns + 20_000_000 {}
    let calibration = Calibration::between(first, read_both()).expect("a counter that advances");
    ClockSource::Counter(calibration)
}

/// Asks in each case while the scopes are so.
fn in_scopes(criterion: &mut Criterion, scopes: BenchScopes, cases: &[&str]) {
    let Some(agent) = RunningAgent::start(scopes) else {
        println!("SKIPPED: no agent was built: cargo build --release, or name one in TIDEGATE");
        return;
    };
    let client = agent::client(&agent.runtime_dir());
    for case in cases {
        let resource = client.resource(case).expect("a name");
        let begin = Instant::now();
        // Lanes and breakers are as they are after the first calls, and the scopes as they become when they are used.
        while begin.elapsed() < Duration::from_secs(1) {
            ask(&resource);
        }
        let group = match scopes {
            BenchScopes::Calm => "client",
            BenchScopes::Overload => "client in overload",
            BenchScopes::Reject => "client refused by its scope",
        };
        criterion.bench_function(&format!("{case}/{group}"), |bencher| {
            bencher.iter(|| ask(&resource));
        });
    }
    if scopes == BenchScopes::Calm {
        by_threads(criterion, &client);
    }
    let status = client.status();
    assert_eq!(status.open, 0, "every decision was made on the pages");
}

fn by_client(criterion: &mut Criterion) {
    in_scopes(criterion, BenchScopes::Calm, &CASES);
    in_scopes(criterion, BenchScopes::Overload, &CASES);
    in_scopes(criterion, BenchScopes::Reject, &[NO_RULE]);
}

fn by_threads(criterion: &mut Criterion, client: &Client) {
    let mut group = criterion.benchmark_group("threads");
    let resource = client.resource(FLOW_BREAKER).expect("a name");
    for threads in [1_u32, 2, 8, 16, 200] {
        group.bench_function(threads.to_string(), |bencher| {
            bencher.iter_custom(|calls| {
                let each = calls.div_ceil(threads.into());
                let begin = Instant::now();
                thread::scope(|scope| {
                    for _thread in 0..threads {
                        scope.spawn(|| {
                            for _call in 0..each {
                                ask(&resource);
                            }
                        });
                    }
                });
                begin.elapsed()
            });
        });
    }
    group.finish();
}

fn by_gate(criterion: &mut Criterion) {
    let never_slow = BreakerTrip::SlowRatio {
        max_rt_ns: 3_600_000_000_000,
        ratio: 0.5,
    };
    let mut pages = BenchPages::by(counter(), monotonic_ns());
    let slots = [
        (NO_RULE, pages.plain("no_rule", None)),
        ("flow", pages.plain("flow", Some(NEVER_REACHED))),
        (
            FLOW_BREAKER,
            pages.ruled("flow_breaker", &[flow(NEVER_REACHED), breaker(never_slow)]),
        ),
        ("refused", pages.plain("refused", Some(0))),
    ];
    let gate = pages.gate();
    for (case, slot) in slots {
        let decide = || {
            if let Some(ticket) = enter(&gate, slot) {
                exit(&gate, &ticket, Outcome::Ok);
            }
        };
        (0..64).for_each(|_call| decide());
        criterion.bench_function(&format!("{case}/gate"), |bencher| bencher.iter(decide));
    }
}

fn beside(criterion: &mut Criterion) {
    criterion.bench_function("beside/two clock reads", |bencher| {
        bencher.iter(|| (Instant::now(), Instant::now()));
    });
    let quota = Quota::per_second(NonZeroU32::new(NEVER_REACHED).expect("more than none"));
    let governor = RateLimiter::direct(quota);
    criterion.bench_function("beside/governor", |bencher| {
        bencher.iter(|| governor.check().is_ok());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = by_client, by_gate, beside
}
criterion_main!(benches);
