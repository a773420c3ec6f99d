//! In overload the law holds goodput, reacts in time, and lets go in time.

use crate::service::{Fate, Phase, Service, fixed_goodput_qps, run};
use tidegate_abi::decision::ScopeState;

const WAITING: Service = Service {
    wait_s: 0.05,
    deadline_s: 0.5,
    ..Service::PLAIN
};

/// Services of 160 requests a second and more.
const SERVICES: [(&str, Service); 7] = [
    ("plain", Service::PLAIN),
    (
        "constant work",
        Service {
            constant_work: true,
            ..Service::PLAIN
        },
    ),
    ("waits 50 ms for others", WAITING),
    (
        "four CPUs",
        Service {
            cpus: 4.0,
            work_s: 0.002,
            wait_s: 0.01,
            ..Service::PLAIN
        },
    ),
    (
        "pool of 2",
        Service {
            workers: Some(2),
            ..Service::PLAIN
        },
    ),
    (
        "pool of 8",
        Service {
            workers: Some(8),
            ..Service::PLAIN
        },
    ),
    (
        "pool of 64 that waits",
        Service {
            workers: Some(64),
            ..WAITING
        },
    ),
];

/// In the middle of a tick.
const STEP_S: f64 = 10.05;
const END_S: f64 = 25.0;

fn step_up(load: f64) -> [Phase; 3] {
    [
        Phase::new(0.0, 0.5),
        Phase::new(STEP_S, load),
        Phase::new(END_S, 0.5),
    ]
}

#[test]
fn goodput_stays_at_95_percent_of_what_can_be_had() {
    for (name, service) in SERVICES {
        let peak = service.peak_qps();
        for load in [2.0, 5.0, 10.0] {
            let outcome = run(service, &step_up(load), END_S, 7);
            let goodput = outcome.goodput_qps(STEP_S + 1.0, END_S - 0.5, service.deadline_s);
            let best = peak.min(service.bound(load) * service.capacity_qps());
            let share = goodput / best;
            assert!(
                share >= 0.95,
                "{name} at {load} x: {share:.3} of {best:.0}/s"
            );
        }
    }
}

#[test]
fn whoever_is_admitted_at_the_step_waits_half_a_second_at_most() {
    let service = Service {
        constant_work: true,
        ..Service::PLAIN
    };
    let outcome = run(service, &step_up(10.0), END_S, 7);
    let longest = outcome
        .requests
        .iter()
        .filter(|(arrival, _fate)| (STEP_S..STEP_S + 2.0).contains(arrival))
        .filter_map(|(_arrival, fate)| match fate {
            Fate::Answered { after_s } => Some(*after_s),
            Fate::Refused | Fate::Lost => None,
        })
        .fold(0.0, f64::max);
    assert!((0.1..0.5).contains(&longest), "{longest:.3} s");
}

#[test]
fn a_slow_service_holds_most_of_its_peak() {
    let slow = Service {
        cpus: 1.0,
        work_s: 0.02,
        deadline_s: 0.5,
        ..Service::PLAIN
    };
    let peak = slow.peak_qps();
    for load in [2.0, 5.0, 10.0] {
        let outcome = run(slow, &step_up(load), END_S, 7);
        let goodput = outcome.goodput_qps(STEP_S + 1.0, END_S - 0.5, slow.deadline_s);
        let best = peak.min(slow.bound(load) * slow.capacity_qps());
        assert!(goodput / best >= 0.85, "{load} x: {:.3}", goodput / best);
    }
}

#[test]
fn four_full_workers_do_as_much_as_under_the_best_limit_that_stands_still() {
    let four = Service {
        cpus: 4.0,
        workers: Some(4),
        ..Service::PLAIN
    };
    for load in [1.2, 2.0, 5.0] {
        let fixed = |limit| fixed_goodput_qps(four, load, limit, STEP_S + 1.0, END_S);
        let best = [4, 5, 6, 8, 12, 16, 32, 64, 128].map(fixed);
        let best = best.into_iter().fold(0.0, f64::max);
        let outcome = run(four, &step_up(load), END_S, 7);
        let goodput = outcome.goodput_qps(STEP_S + 1.0, END_S - 0.5, four.deadline_s);
        assert!(
            goodput >= 0.95 * best,
            "{load} x: {goodput:.0} of {best:.0}/s"
        );
    }
}

#[test]
fn the_first_request_is_shed_within_300_ms() {
    for (name, service) in SERVICES {
        for load in [2.0, 5.0, 10.0] {
            let outcome = run(service, &step_up(load), STEP_S + 2.0, 3);
            let after_s = outcome.first_refusal_after(STEP_S).unwrap();
            assert!(after_s <= 0.3, "{name} at {load} x: {after_s:.3} s");
            assert_eq!(outcome.refused(0.0, STEP_S), 0, "{name}");
        }
    }
}

#[test]
fn refusals_end_with_the_overload_and_the_state_within_ten_ticks() {
    for (name, service) in SERVICES {
        for load in [2.0, 10.0] {
            let outcome = run(service, &step_up(load), END_S + 10.0, 5);
            let late = outcome.refused(END_S + 0.2, END_S + 10.0);
            assert_eq!(late, 0, "{name} at {load} x: refused after the end");
            let healthy = outcome.changes.iter().find(|change| change.0 > END_S);
            let (at_s, state) = *healthy.unwrap();
            assert_eq!(state, ScopeState::Healthy);
            assert!(at_s - END_S <= 1.05, "{name} at {load} x: {at_s:.2}");
        }
    }
}

#[test]
fn a_cold_service_at_ten_times_its_capacity_gets_through() {
    for (name, service) in SERVICES {
        let outcome = run(service, &[Phase::new(0.0, 10.0)], 30.0, 5);
        let capacity = service.capacity_qps();
        let first = outcome.goodput_qps(0.0, 5.0, service.deadline_s) / capacity;
        assert!(first >= 0.7, "{name}: {first:.2} in the first 5 s");
        let then = outcome.goodput_qps(5.0, 29.5, service.deadline_s) / capacity;
        assert!(then >= 0.95 * 0.95, "{name}: {then:.2} after that");
    }
}

/// The agent has ticked before the load begins, as beside a service that has just started.
#[test]
fn field_l14_a_cold_service_straight_into_ten_times_its_capacity_loses_less_than_half_a_second() {
    const START_S: f64 = 0.55;
    for (name, service) in SERVICES {
        let phases = [Phase::new(0.0, 0.0), Phase::new(START_S, 10.0)];
        let outcome = run(service, &phases, START_S + 6.0, 5);
        let second =
            |nth: f64| outcome.goodput_qps(START_S + nth, START_S + nth + 1.0, service.deadline_s);
        let lost_s = 1.0 - second(0.0) / second(4.0);
        assert!(lost_s < 0.5, "{name}: {lost_s:.2} s lost");
        assert_eq!(outcome.changes.len(), 1, "{name}: {:?}", outcome.changes);
        let phases = [Phase::new(0.0, 0.0), Phase::new(START_S, 0.8)];
        let calm = run(service, &phases, START_S + 6.0, 5);
        assert_eq!(calm.refused(0.0, START_S + 6.0), 0, "{name} at 0.8 x");
    }
}

#[test]
fn from_a_cold_start_it_has_not_run_away_after_a_minute() {
    for (name, service) in &SERVICES[..2] {
        let outcome = run(*service, &[Phase::new(0.0, 10.0)], 90.0, 5);
        let goodput = outcome.goodput_qps(60.0, 89.5, service.deadline_s);
        let share = goodput / service.capacity_qps();
        assert!(share >= 0.95 * 0.95, "{name}: {share:.2}");
    }
}

#[test]
fn ten_minutes_of_overload_drift_nothing() {
    let phases = [Phase::new(0.0, 0.5), Phase::new(STEP_S, 3.0)];
    let outcome = run(WAITING, &phases, STEP_S + 600.0, 3);
    let goodput = |from_s: f64| outcome.goodput_qps(from_s, from_s + 59.0, WAITING.deadline_s);
    assert!(goodput(STEP_S + 540.0) >= 0.95 * goodput(STEP_S + 1.0));
    let base_rt_s = outcome.published.base_rt_s.unwrap();
    assert!((0.03..0.09).contains(&base_rt_s), "{base_rt_s}");
}

#[test]
fn others_may_become_slower_in_the_middle_of_overload() {
    for slower in [5.0, 10.0] {
        let mut phases = step_up(3.0);
        phases[2] = Phase {
            slower,
            ..Phase::new(END_S, 3.0)
        };
        let outcome = run(WAITING, &phases, END_S + 40.0, 5);
        let goodput = outcome.goodput_qps(END_S + 10.0, END_S + 38.0, 5.0);
        let share = goodput / WAITING.capacity_qps();
        assert!(share >= 0.9, "{slower} x slower: {share:.2}");
    }
}

#[test]
fn wrong_cpu_readings_and_unreadable_queues_cost_little() {
    let misread = |cpu_reading| Service {
        cpu_reading,
        ..Service::PLAIN
    };
    let blind = Service {
        queues_readable: false,
        ..Service::PLAIN
    };
    for (name, service) in [
        ("reads 0.8 of the CPU", misread(0.8)),
        ("reads 0.5 of the CPU", misread(0.5)),
        ("reads no queue", blind),
    ] {
        let outcome = run(service, &step_up(5.0), END_S, 7);
        let goodput = outcome.goodput_qps(STEP_S + 2.0, END_S - 0.5, service.deadline_s);
        let share = goodput / service.capacity_qps();
        assert!(share >= 0.9, "{name}: {share:.2}");
    }
}
