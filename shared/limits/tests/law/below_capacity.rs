//! Below capacity nobody is refused, whatever a single tick looks like.

use crate::service::{Outcome, Phase, Service, run};
use tidegate_abi::decision::ScopeState;

const HALF_THE_CPU: Service = Service {
    wait_s: 0.05,
    deadline_s: 0.5,
    ..Service::PLAIN
};

/// Changes of state other than the end of the cold start.
fn changes(outcome: &Outcome) -> usize {
    let first_healthy = |change: &&(f64, ScopeState)| change.0 > 1.0;
    outcome.changes.iter().filter(first_healthy).count()
}

/// Ten seconds at 30 %, in which one second is another phase, ten times over.
fn blips(second: Phase) -> Vec<Phase> {
    (0..10)
        .flat_map(|round| {
            let at_s = f64::from(round) * 10.0;
            let blip = Phase {
                at_s: at_s + 8.0,
                ..second
            };
            [Phase::new(at_s, 0.3), blip, Phase::new(at_s + 9.0, 0.3)]
        })
        .collect()
}

#[test]
fn nobody_is_refused_at_80_percent() {
    let pool = Service {
        workers: Some(8),
        ..Service::PLAIN
    };
    for (service, minutes) in [(Service::PLAIN, 60.0), (HALF_THE_CPU, 10.0), (pool, 10.0)] {
        for load in [0.5, 0.8] {
            let outcome = run(service, &[Phase::new(0.0, load)], minutes * 60.0, 11);
            assert_eq!(outcome.refusals.len(), 0, "{service:?} at {load}");
            assert!(changes(&outcome) <= 2, "{:?}", outcome.changes);
        }
    }
}

#[test]
fn an_hour_of_79_and_81_percent_changes_at_most_twice() {
    let phases: Vec<Phase> = (0..60)
        .map(|minute| {
            let load = if minute % 2 == 0 { 0.79 } else { 0.81 };
            Phase::new(f64::from(minute) * 60.0, load)
        })
        .collect();
    let outcome = run(Service::PLAIN, &phases, 3600.0, 6);
    assert_eq!(outcome.refusals.len(), 0);
    assert!(changes(&outcome) <= 2, "{:?}", outcome.changes);
}

#[test]
fn a_second_of_neighbours_or_of_full_load_refuses_nobody() {
    let neighbours = Phase {
        neighbours: 2.0,
        ..Phase::new(0.0, 0.3)
    };
    for second in [neighbours, Phase::new(0.0, 1.05)] {
        let outcome = run(Service::PLAIN, &blips(second), 100.0, 3);
        assert_eq!(outcome.refusals.len(), 0, "{second:?}");
    }
}

#[test]
fn slow_others_are_no_overload() {
    for slower in [5.0, 10.0] {
        let slow = Phase {
            slower,
            ..Phase::new(20.0, 0.5)
        };
        let phases = [Phase::new(0.0, 0.5), slow, Phase::new(40.0, 0.5)];
        let outcome = run(HALF_THE_CPU, &phases, 60.0, 5);
        assert_eq!(outcome.refusals.len(), 0, "{slower} x slower");
    }
}

#[test]
fn refusals_end_when_80_percent_follow_an_overload() {
    let phases = [
        Phase::new(0.0, 0.5),
        Phase::new(10.0, 3.0),
        Phase::new(25.0, 0.8),
    ];
    let outcome = run(Service::PLAIN, &phases, 125.0, 1);
    assert_eq!(outcome.refused(27.0, 125.0), 0);
}

#[test]
fn a_false_entry_of_a_slow_service_does_not_last() {
    let slow = Service {
        cpus: 1.0,
        work_s: 0.02,
        deadline_s: 0.5,
        ..Service::PLAIN
    };
    let outcome = run(slow, &[Phase::new(0.0, 0.8)], 1800.0, 9);
    let refused = outcome.refusals.len();
    assert!(refused * 500 <= outcome.requests.len(), "{refused} refused");
}
