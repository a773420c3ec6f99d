//! What happens when in the scenes.

use std::time::Duration;

use super::{Act, Beside, Callers, Setup, Terms, What};
use crate::figures::Span;
use crate::lab::Shape;
use crate::load::{Phase, Retry, Slow};
use crate::service::Event;

/// Seconds at half load before the judged part, in which a law learns what is normal.
const BEFORE_S: f64 = 4.0;
/// Seconds at half load after it.
const AFTER_S: f64 = 3.0;
/// Load before and after.
const CALM: f64 = 0.5;
/// Workers of the service with a slow downstream.
pub(super) const SLOW_WORKERS: u32 = 32;
/// Length of a burst, and from one burst to the next, seconds.
const BURST_S: f64 = 1.0;
const BURST_EACH_S: f64 = 4.0;
/// After a downstream has come back, what it left in queues is done within this, seconds.
const BACK_S: f64 = 1.0;
/// Seconds between two changes of the rules.
const RELOAD_EACH_S: f64 = 0.2;

/// Calm, the offered load, calm.
pub(super) fn step(shape: Shape, terms: &Terms) -> Setup {
    let seconds = terms.length.as_secs_f64();
    let phases = [(BEFORE_S, CALM), (seconds, terms.offered), (AFTER_S, CALM)];
    Setup {
        callers: vec![Callers {
            service: 0,
            path: "/work",
            phases: phases.map(|(seconds, qps)| Phase { seconds, qps }).into(),
            slow: Slow::NONE,
            retry: None,
        }],
        shape,
        judged: Span {
            from_s: BEFORE_S,
            until_s: BEFORE_S + seconds,
        },
        with_slow: true,
        beside: None,
        rules: String::new(),
        acts: Vec::new(),
        share: 1.0,
    }
}

pub(super) fn cold_start(mut setup: Setup) -> Setup {
    for callers in &mut setup.callers {
        callers.phases.remove(0);
    }
    setup.judged = Span {
        from_s: 0.0,
        until_s: setup.judged.length_s(),
    };
    setup
}

pub(super) fn bursts(mut setup: Setup, terms: &Terms) -> Setup {
    let mut phases = vec![Phase {
        seconds: BEFORE_S,
        qps: 0.3,
    }];
    let mut end_s = BEFORE_S;
    while end_s < BEFORE_S + terms.length.as_secs_f64() {
        let burst = [(BURST_S, terms.offered), (BURST_EACH_S - BURST_S, 0.3)];
        phases.extend(burst.map(|(seconds, qps)| Phase { seconds, qps }));
        end_s += BURST_EACH_S;
    }
    for callers in &mut setup.callers {
        callers.phases.clone_from(&phases);
    }
    setup.judged.until_s = end_s;
    setup
}

pub(super) fn slow_downstream(mut setup: Setup, rule: bool) -> Setup {
    for callers in &mut setup.callers {
        callers.slow.share = 0.2;
    }
    if rule {
        let most = SLOW_WORKERS * 3 / 4;
        setup.rules =
            format!("[[flow]]\nresource = \"lab-slow\"\ngrade = \"concurrency\"\ncount = {most}\n");
    }
    Setup {
        with_slow: false,
        ..setup
    }
}

pub(super) fn retry_storm(mut setup: Setup) -> Setup {
    for callers in &mut setup.callers {
        callers.retry = Some(Retry {
            times: 3,
            after: Duration::from_millis(50),
            patience: Duration::from_millis(250),
        });
    }
    setup
}

/// The judged callers ask for a steady 30 %; the load goes to a second service.
pub(super) fn greedy(mut setup: Setup) -> Setup {
    let modest = setup.callers.iter().cloned().map(|mut callers| {
        callers.phases.iter_mut().for_each(|phase| phase.qps = 0.3);
        callers
    });
    let modest: Vec<Callers> = modest.collect();
    for callers in &mut setup.callers {
        callers.service = 1;
        // Before and after, both together are at half load.
        for phase in &mut callers.phases {
            if phase.qps <= CALM {
                phase.qps = 0.2;
            }
        }
    }
    setup.callers.splice(0..0, modest);
    setup
}

/// The judged callers are critical and ask for a steady 40 %; the load is sheddable.
pub(super) fn classes(mut setup: Setup) -> Setup {
    let critical = setup.callers.iter().cloned().map(|mut callers| {
        callers.phases.iter_mut().for_each(|phase| phase.qps = 0.4);
        callers.path = "/critical";
        callers
    });
    let critical: Vec<Callers> = critical.collect();
    for callers in &mut setup.callers {
        callers.path = "/sheddable";
        // Before and after, both together are at half load.
        for phase in &mut callers.phases {
            if phase.qps <= CALM {
                phase.qps = 0.1;
            }
        }
    }
    setup.callers.splice(0..0, critical);
    setup
}

/// Beside something that takes half of the CPU.
pub(super) fn beside(setup: Setup, beside: Beside) -> Setup {
    Setup {
        beside: Some(beside),
        share: 0.5,
        ..setup
    }
}

/// A fifth of the judged service's requests ask for a slow resource, and others for a third one.
pub(super) fn slow_of_several(setup: Setup) -> Setup {
    let mut setup = slow_downstream(setup, false);
    let others = setup.callers.iter().cloned().map(|mut callers| {
        callers.phases.iter_mut().for_each(|phase| phase.qps = 0.1);
        callers.path = "/other";
        callers.slow = Slow::NONE;
        callers
    });
    let others: Vec<Callers> = others.collect();
    setup.callers.extend(others);
    for callers in setup.callers.iter_mut().take(1) {
        callers.phases.iter_mut().for_each(|phase| phase.qps -= 0.1);
    }
    setup
}

/// A tenth of the requests wait, under the resource of the others.
pub(super) fn slow_shared(mut setup: Setup) -> Setup {
    for callers in &mut setup.callers {
        callers.slow = Slow {
            share: 0.1,
            path: "/slow-shared",
        };
    }
    Setup {
        with_slow: false,
        ..setup
    }
}

/// Nothing downstream answers for as long as the judged part of other scenes is. Judged is what comes after.
pub(super) fn dead_downstream(mut setup: Setup, terms: &Terms) -> Setup {
    let dies_s = BEFORE_S;
    let lives_s = dies_s + terms.length.as_secs_f64();
    setup.acts = vec![
        happens(dies_s, Event::DownstreamDies),
        happens(lives_s, Event::DownstreamLives),
    ];
    for callers in &mut setup.callers {
        for phase in callers.phases.iter_mut().skip(2) {
            phase.seconds = AFTER_S + BACK_S;
        }
    }
    setup.judged = Span {
        from_s: lives_s + BACK_S,
        until_s: lives_s + BACK_S + AFTER_S,
    };
    setup
}

/// The capacity is half as much from then on, for good. Loads are times of that.
pub(super) fn deploy(mut setup: Setup) -> Setup {
    for callers in &mut setup.callers {
        for phase in callers.phases.iter_mut().take(1) {
            phase.qps = 2.0 * CALM;
        }
    }
    setup.acts = vec![happens(setup.judged.from_s, Event::Deploy)];
    Setup {
        share: 0.5,
        ..setup
    }
}

pub(super) fn hot_reload(mut setup: Setup) -> Setup {
    let mut at_s = setup.judged.from_s;
    while at_s < setup.judged.until_s {
        let what = What::Reload;
        setup.acts.push(Act { at_s, what });
        at_s += RELOAD_EACH_S;
    }
    setup
}

/// A second service of the group is offered the same; each has half of the capacity.
pub(super) fn two_services(mut setup: Setup) -> Setup {
    let second = setup.callers.iter().cloned().map(|callers| Callers {
        service: 1,
        ..callers
    });
    let second: Vec<Callers> = second.collect();
    setup.callers.extend(second);
    Setup {
        share: 0.5,
        ..setup
    }
}

const fn happens(at_s: f64, event: Event) -> Act {
    Act {
        at_s,
        what: What::Event(event),
    }
}
