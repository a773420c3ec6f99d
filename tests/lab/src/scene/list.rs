//! The scenes by name.

use clap::ValueEnum;

use super::setups::{self, SLOW_WORKERS};
use super::{Beside, Setup, Terms};
use crate::lab::{Door, Shape};
use crate::service::Kind;

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
    /// Three resources, one of which waits 2 s downstream; no rule.
    SlowOfSeveral,
    /// A tenth of the requests wait 2 s downstream, under the resource of the others; 8 workers.
    SlowShared,
    /// Everything times out for the judged time; judged is what comes a second after it.
    DeadDownstream,
    /// Requests take 1 ms of CPU time, and one in a hundred 500 ms.
    Bimodal,
    /// From the judged part on each request takes twice the CPU time, for good.
    Deploy,
    /// A thread that goes before all others takes half of the CPU, in slices of 10 ms.
    Steal,
    /// The rules change five times a second during the overload.
    HotReload,
    /// Two services in one group are offered the same.
    TwoServices,
    /// The steady scene, asked over `gate.sock` from inside the group.
    SteadyGate,
    /// The steady scene, asked over HTTP from inside the group.
    SteadyHttp,
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
            Self::Neighbour | Self::Quota | Self::Bimodal | Self::Steal => &[0.5, 2.0],
            Self::SlowDownstream
            | Self::SlowDownstreamNoRule
            | Self::SlowOfSeveral
            | Self::SlowShared
            | Self::DeadDownstream
            | Self::GcStorm => &[0.5],
            Self::Deploy => &[0.8, 2.0],
            Self::RetryStorm => &[1.5, 3.0],
            Self::Greedy => &[10.0],
            Self::Classes | Self::HotReload | Self::TwoServices => &[5.0],
            Self::Async | Self::AcceptQueue | Self::SteadyGate | Self::SteadyHttp => {
                &[0.5, 2.0, 5.0]
            }
        }
    }

    /// Whether it needs control groups.
    pub(crate) const fn needs_groups(self) -> bool {
        matches!(
            self,
            Self::Neighbour | Self::Quota | Self::Steal | Self::SteadyGate | Self::SteadyHttp
        )
    }

    /// Whether it needs a JVM.
    pub(crate) const fn needs_java(self) -> bool {
        matches!(self, Self::GcStorm)
    }

    /// Whether it needs a thread that goes before all others.
    pub(crate) const fn needs_real_time(self) -> bool {
        matches!(self, Self::Steal)
    }

    /// What serves in it.
    pub(crate) const fn shape(self) -> Shape {
        match self {
            Self::Async => Shape::of(Kind::Async),
            Self::AcceptQueue => Shape::of(Kind::Accepting),
            Self::SlowDownstream | Self::SlowDownstreamNoRule | Self::SlowOfSeveral => Shape {
                workers: SLOW_WORKERS,
                ..Shape::of(Kind::Pool)
            },
            Self::Quota => Shape {
                quota: Some(0.5),
                ..Shape::of(Kind::Pool)
            },
            Self::Bimodal => Shape {
                bimodal: true,
                ..Shape::of(Kind::Pool)
            },
            Self::SteadyGate => Shape {
                door: Door::Gate,
                ..Shape::of(Kind::Pool)
            },
            Self::SteadyHttp => Shape {
                door: Door::Http,
                ..Shape::of(Kind::Pool)
            },
            Self::SlowShared
            | Self::DeadDownstream
            | Self::Deploy
            | Self::Steal
            | Self::HotReload
            | Self::TwoServices
            | Self::Steady
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
        let plain = setups::step(self.shape(), terms);
        match self {
            Self::Steady
            | Self::Quota
            | Self::Async
            | Self::AcceptQueue
            | Self::Bimodal
            | Self::SteadyGate
            | Self::SteadyHttp => plain,
            Self::ColdStart => setups::cold_start(plain),
            Self::Burst => setups::bursts(plain, terms),
            Self::Neighbour => setups::beside(plain, Beside::Neighbour),
            Self::Steal => setups::beside(plain, Beside::Thief),
            Self::SlowDownstream => setups::slow_downstream(plain, true),
            Self::SlowDownstreamNoRule => setups::slow_downstream(plain, false),
            Self::SlowOfSeveral => setups::slow_of_several(plain),
            Self::SlowShared => setups::slow_shared(plain),
            Self::DeadDownstream => setups::dead_downstream(plain, terms),
            Self::Deploy => setups::deploy(plain),
            Self::HotReload => setups::hot_reload(plain),
            Self::TwoServices => setups::two_services(plain),
            Self::GcStorm => Setup {
                beside: Some(Beside::CollectingJvm),
                ..plain
            },
            Self::RetryStorm => setups::retry_storm(plain),
            Self::Greedy => setups::greedy(plain),
            Self::Classes => setups::classes(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_judged_span_is_where_the_offered_load_is() {
        let terms = Terms {
            offered: 5.0,
            length: Duration::from_secs(8),
        };
        let judged_later = |name: &&Name| **name == Name::DeadDownstream;
        for name in Name::value_variants()
            .iter()
            .filter(|name| !judged_later(name))
        {
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
