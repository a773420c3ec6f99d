//! Whole sets of runs: what README.md tells, and a short form of it.

use std::time::Duration;

use crate::law::{Law, Proxy};
use crate::measure::Part;
use crate::options::Set;
use crate::scene::Name;

/// All laws but Tidegate's.
const RIVALS: [Law; 6] = [
    Law::None,
    Law::Sentinel,
    Law::Aegis,
    Law::Gozero,
    Law::Gradient2,
    Law::Vegas,
];

/// Scenes beside the steady one.
const SCENES: [Name; 21] = [
    Name::Burst,
    Name::Neighbour,
    Name::Quota,
    Name::SlowDownstreamNoRule,
    Name::SlowDownstream,
    Name::GcStorm,
    Name::RetryStorm,
    Name::Greedy,
    Name::Classes,
    Name::Async,
    Name::AcceptQueue,
    Name::SlowOfSeveral,
    Name::SlowShared,
    Name::DeadDownstream,
    Name::Bimodal,
    Name::Deploy,
    Name::Steal,
    Name::HotReload,
    Name::TwoServices,
    Name::SteadyGate,
    Name::SteadyHttp,
];

/// The runs of a set, with those of the programs of others that are asked for.
pub(crate) fn parts(set: Set, rivals: &[Proxy]) -> Vec<Part> {
    let mut parts = match set {
        Set::Full => full(),
        Set::Short => short(),
    };
    for proxy in rivals {
        let part = |scene, offered: &[f64]| Part {
            law: proxy.law(),
            scene,
            offered: offered.into(),
            seeds: 1,
            length: Duration::from_secs(6),
        };
        parts.push(part(Name::Steady, &[0.8, 2.0, 5.0, 10.0]));
        parts.push(part(Name::ColdStart, &[10.0]));
        parts.push(part(Name::SlowShared, &[0.5]));
    }
    parts
}

fn full() -> Vec<Part> {
    let length = Duration::from_secs(6);
    let part = |law, scene, offered: &[f64], seeds| Part {
        law,
        scene,
        offered: offered.into(),
        seeds,
        length,
    };
    let mut parts = vec![
        part(Law::Adaptive, Name::Steady, &[0.5, 0.8, 2.0, 5.0, 10.0], 5),
        part(Law::Adaptive, Name::ColdStart, &[5.0, 10.0], 5),
    ];
    parts.extend(RIVALS.map(|law| part(law, Name::Steady, &[2.0, 5.0, 10.0], 1)));
    for scene in SCENES {
        parts.push(part(Law::Adaptive, scene, scene.loads(), 1));
    }
    parts.extend(RIVALS.map(|law| part(law, Name::SlowShared, &[0.5], 1)));
    parts.push(part(Law::None, Name::RetryStorm, &[1.5], 1));
    parts
}

fn short() -> Vec<Part> {
    let part = |law, scene, offered: &[f64], seeds| Part {
        law,
        scene,
        offered: offered.into(),
        seeds,
        length: Duration::from_secs(4),
    };
    let own = part(Law::Adaptive, Name::Steady, &[0.8, 2.0, 5.0, 10.0], 3);
    let rivals = RIVALS.map(|law| part(law, Name::Steady, &[5.0], 1));
    let scenes = [
        (Name::SteadyGate, 5.0),
        (Name::SteadyHttp, 5.0),
        (Name::ColdStart, 10.0),
        (Name::Burst, 1.0),
        (Name::SlowDownstreamNoRule, 0.5),
        (Name::SlowDownstream, 0.5),
        (Name::Greedy, 10.0),
        (Name::Classes, 5.0),
        (Name::Async, 5.0),
    ];
    let scenes = scenes.map(|(scene, offered)| part(Law::Adaptive, scene, &[offered], 1));
    [own].into_iter().chain(rivals).chain(scenes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start, calm before and after, and the wait for the last answers, of one run.
    const AROUND_S: u64 = 9;
    /// Yardsticks of eight shapes.
    const YARDSTICKS_S: u64 = 8 * 25;

    fn seconds(set: Set, rivals: &[Proxy]) -> u64 {
        let parts = parts(set, rivals);
        let runs = parts.iter().map(|part| {
            part.offered.len() as u64 * part.seeds * (AROUND_S + part.length.as_secs())
        });
        YARDSTICKS_S + runs.sum::<u64>()
    }

    #[test]
    fn the_full_set_takes_at_most_half_an_hour_and_the_short_one_ten_minutes() {
        let minutes = |set, rivals: &[Proxy]| seconds(set, rivals).div_ceil(60);
        let all = [Proxy::Envoy, Proxy::Haproxy, Proxy::Nginx];
        let told = [
            minutes(Set::Short, &[]),
            minutes(Set::Full, &[]),
            minutes(Set::Full, &all),
        ];
        assert!(told[0] <= 10 && told[1] <= 30 && told[2] <= 35, "{told:?}");
    }
}
