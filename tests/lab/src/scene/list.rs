//! The scenes by name.

use std::time::Duration;

use clap::ValueEnum;

use super::{Beside, Callers, Setup, Terms};
use crate::figures::Span;
use crate::lab::Shape;
use crate::load::{Phase, Retry};
use crate::service::Kind;

/// Seconds at half load before the judged part, in which a law learns what is normal.
const BEFORE_S: f64 = 4.0;
/// Seconds at half load after it.
const AFTER_S: f64 = 3.0;
/// Load before and after.
const CALM: f64 = 0.5;
/// Workers of the service with a slow downstream.
const SLOW_WORKERS: u32 = 32;
/// Length of a burst, and from one burst to the next, seconds.
const BURST_S: f64 = 1.0;
const BURST_EACH_S: f64 = 4.0;

/// A scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Name {
    /// Half load, then the offered load, then half load.
    Steady,
    /// The offered load from the first moment on.
    ColdStart,
    /// 30 % load with a second of the offered load every four.
    Burst,
    /// A busy neighbour in another group takes half of the CPU.
    Neighbour,
    /// The group may use half a CPU by its quota.
    Quota,
    /// A fifth of the requests wait 2 s downstream; a concurrency rule leaves them 75 % of the pool.
    SlowDownstream,
    /// The same without the rule.
    SlowDownstreamNoRule,
    /// A JVM in the service's group collects its whole heap all the time.
    GcStorm,
    /// Callers who are refused or wait too long come again, three times.
    RetryStorm,
    /// The judged service asks for 30 % beside one in the same group that is offered the load.
    Greedy,
    /// The judged callers are critical and ask for 40 %; the load beside them, at the same service, is sheddable.
    Classes,
    /// A tokio service that accepts everything at once.
    Async,
    /// A thread pool whose waiting connections are in the kernel's accept queue.
    AcceptQueue,
}

impl Name {
    /// The word on the command line.
    pub(crate) fn text(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Loads that show what the scene is about.
    pub(crate) const fn loads(self) -> &'static [f64] {
        match self {
            Self::Steady => &[0.5, 1.0, 2.0, 5.0, 10.0],
            Self::ColdStart => &[5.0, 10.0],
            Self::Burst => &[1.0],
            Self::Neighbour | Self::Quota => &[0.5, 2.0],
            Self::SlowDownstream | Self::SlowDownstreamNoRule | Self::GcStorm => &[0.5],
            Self::RetryStorm => &[1.5, 3.0],
            Self::Greedy => &[10.0],
            Self::Classes => &[5.0],
            Self::Async | Self::AcceptQueue => &[0.5, 2.0, 5.0],
        }
    }

    /// Whether it needs control groups.
    pub(crate) const fn needs_groups(self) -> bool {
        matches!(self, Self::Neighbour | Self::Quota)
    }

    /// Whether it needs a JVM.
    pub(crate) const fn needs_java(self) -> bool {
        matches!(self, Self::GcStorm)
    }

    /// What serves in it.
    pub(crate) const fn shape(self) -> Shape {
        match self {
            Self::Async => Shape::of(Kind::Async),
            Self::AcceptQueue => Shape::of(Kind::Accepting),
            Self::SlowDownstream | Self::SlowDownstreamNoRule => Shape {
                workers: SLOW_WORKERS,
                ..Shape::of(Kind::Pool)
            },
            Self::Quota => Shape {
                quota: Some(0.5),
                ..Shape::of(Kind::Pool)
            },
            Self::Steady
            | Self::ColdStart
            | Self::Burst
            | Self::Neighbour
            | Self::GcStorm
            | Self::RetryStorm
            | Self::Greedy
            | Self::Classes => Shape::of(Kind::Pool),
        }
    }

    /// The scene at an offered load.
    pub(crate) fn setup(self, terms: &Terms) -> Setup {
        let plain = step(self.shape(), terms);
        match self {
            Self::Steady | Self::Quota | Self::Async | Self::AcceptQueue => plain,
            Self::ColdStart => cold_start(plain),
            Self::Burst => bursts(plain, terms),
            Self::Neighbour => Setup {
                beside: Some(Beside::Neighbour),
                share: 0.5,
                ..plain
            },
            Self::SlowDownstream => slow_downstream(plain, true),
            Self::SlowDownstreamNoRule => slow_downstream(plain, false),
            Self::GcStorm => Setup {
                beside: Some(Beside::CollectingJvm),
                ..plain
            },
            Self::RetryStorm => retry_storm(plain),
            Self::Greedy => greedy(plain),
            Self::Classes => classes(plain),
        }
    }
}

/// Calm, the offered load, calm.
fn step(shape: Shape, terms: &Terms) -> Setup {
    let seconds = terms.length.as_secs_f64();
    let phases = [(BEFORE_S, CALM), (seconds, terms.offered), (AFTER_S, CALM)];
    Setup {
        callers: vec![Callers {
            service: 0,
            path: "/work",
            phases: phases.map(|(seconds, qps)| Phase { seconds, qps }).into(),
            slow_share: 0.0,
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
        share: 1.0,
    }
}

fn cold_start(mut setup: Setup) -> Setup {
    for callers in &mut setup.callers {
        callers.phases.remove(0);
    }
    setup.judged = Span {
        from_s: 0.0,
        until_s: setup.judged.length_s(),
    };
    setup
}

fn bursts(mut setup: Setup, terms: &Terms) -> Setup {
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

fn slow_downstream(mut setup: Setup, rule: bool) -> Setup {
    for callers in &mut setup.callers {
        callers.slow_share = 0.2;
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

fn retry_storm(mut setup: Setup) -> Setup {
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
fn greedy(mut setup: Setup) -> Setup {
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
fn classes(mut setup: Setup) -> Setup {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judged_span_is_where_the_offered_load_is() {
        let terms = Terms {
            offered: 5.0,
            length: Duration::from_secs(8),
        };
        for name in Name::value_variants() {
            let setup = name.setup(&terms);
            let last = setup.callers.last().expect("there are callers");
            let mut begin_s = 0.0;
            for phase in &last.phases {
                let inside = begin_s >= setup.judged.from_s && begin_s < setup.judged.until_s;
                let offered = (phase.qps - terms.offered).abs() < 1e-9;
                assert!(inside || !offered, "{name:?} at {begin_s}");
                begin_s += phase.seconds;
            }
            assert!(setup.judged.until_s <= begin_s + 1e-9, "{name:?}");
            assert!(!name.loads().is_empty() && !name.text().is_empty());
        }
    }
}
