//! Who goes first in overload: classes by importance, services by their share.

use crate::service::{Caller, Phase, Service, run};
use tidegate_abi::decision::Class;

const fn caller(class: Class, service: usize, share: f64) -> Caller {
    Caller {
        class,
        service,
        share,
        keyed: true,
    }
}

/// Critical requests of 0.4 of the capacity at 2, 5 and 10 times of it; half of the rest is sheddable.
const CLASSES: [(f64, &[Caller]); 3] = [
    (
        2.0,
        &[
            caller(Class::Critical, 0, 0.2),
            caller(Class::Normal, 0, 0.4),
            caller(Class::Sheddable, 0, 0.4),
        ],
    ),
    (
        5.0,
        &[
            caller(Class::Critical, 0, 0.08),
            caller(Class::Normal, 0, 0.46),
            caller(Class::Sheddable, 0, 0.46),
        ],
    ),
    (
        10.0,
        &[
            caller(Class::Critical, 0, 0.04),
            caller(Class::Normal, 0, 0.48),
            caller(Class::Sheddable, 0, 0.48),
        ],
    ),
];

const STEP_S: f64 = 10.05;
const END_S: f64 = 40.0;

fn overload(load: f64) -> [Phase; 2] {
    [Phase::new(0.0, 0.5), Phase::new(STEP_S, load)]
}

#[test]
fn critical_requests_are_answered_while_sheddable_ones_are_shed() {
    for (load, callers) in CLASSES {
        for seed in [1, 2, 3] {
            let service = Service {
                callers,
                ..Service::PLAIN
            };
            let outcome = run(service, &overload(load), END_S, seed);
            let [critical, normal, sheddable] =
                [0, 1, 2].map(|caller| outcome.answered(caller, STEP_S, END_S - 0.5));
            let told = format!("{load} x: {critical:.4} {normal:.3} {sheddable:.3}");
            assert!(critical >= 0.994, "{told}");
            assert!(sheddable <= 0.1, "{told}");
            assert!(sheddable < normal, "{told}");
            let goodput = outcome.goodput_qps(STEP_S + 1.0, END_S - 0.5, service.deadline_s);
            let share = goodput / (service.bound(load) * service.capacity_qps());
            assert!(share >= 0.95, "{told}: goodput {share:.3}");
        }
    }
}

#[test]
fn what_fits_of_the_normal_class_is_answered_before_any_sheddable_request() {
    // Critical 0.2 and normal 0.6 of the capacity, sheddable 1.2 of it.
    const CALLERS: &[Caller] = &[
        caller(Class::Critical, 0, 0.1),
        caller(Class::Normal, 0, 0.3),
        caller(Class::Sheddable, 0, 0.6),
    ];
    let service = Service {
        callers: CALLERS,
        ..Service::PLAIN
    };
    let outcome = run(service, &overload(2.0), END_S, 5);
    let [critical, normal, sheddable] =
        [0, 1, 2].map(|caller| outcome.answered(caller, STEP_S + 1.0, END_S - 0.5));
    let told = format!("{critical:.4} {normal:.3} {sheddable:.3}");
    assert!(critical >= 0.994, "{told}");
    assert!(normal >= 0.95, "{told}");
    assert!((0.05..0.25).contains(&sheddable), "{told}");
}

#[test]
fn a_modest_service_keeps_its_requests_beside_a_greedy_one() {
    // The greedy one offers ten times the capacity, the modest one 0.3 of it.
    const CALLERS: &[Caller] = &[
        caller(Class::Normal, 0, 10.0 / 10.3),
        caller(Class::Normal, 1, 0.3 / 10.3),
    ];
    for keyed in [true, false] {
        let service = Service {
            callers: if keyed { CALLERS } else { UNKEYED },
            ..Service::PLAIN
        };
        for seed in [1, 2, 3] {
            let outcome = run(service, &overload(10.3), END_S, seed);
            let modest = outcome.answered(1, STEP_S, END_S - 0.5);
            let greedy = outcome.answered(0, STEP_S, END_S - 0.5);
            let told = format!("{modest:.4} and {greedy:.3}");
            assert!(modest >= 0.99, "{told}");
            let goodput = outcome.goodput_qps(STEP_S + 1.0, END_S - 0.5, service.deadline_s);
            let share = goodput / (service.bound(10.3) * service.capacity_qps());
            assert!(
                share >= 0.95,
                "{told}: what one leaves the other takes: {share:.3}"
            );
        }
    }
}

const UNKEYED: &[Caller] = &[
    Caller {
        keyed: false,
        ..caller(Class::Normal, 0, 10.0 / 10.3)
    },
    Caller {
        keyed: false,
        ..caller(Class::Normal, 1, 0.3 / 10.3)
    },
];
