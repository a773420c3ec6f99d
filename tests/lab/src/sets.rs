//! Whole sets of runs: what README.md tells, and a short form of it.

use std::time::Duration;

use crate::law::Law;
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
const SCENES: [Name; 12] = [
    Name::ColdStart,
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
];

/// The runs of a set.
pub(crate) fn parts(set: Set) -> Vec<Part> {
    match set {
        Set::Full => full(),
        Set::Short => short(),
    }
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
    let own = part(Law::Adaptive, Name::Steady, &[0.5, 0.8, 2.0, 5.0, 10.0], 5);
    let rivals = RIVALS.map(|law| part(law, Name::Steady, &[2.0, 5.0, 10.0], 1));
    let scenes = SCENES.map(|scene| part(Law::Adaptive, scene, scene.loads(), 1));
    let storm = part(Law::None, Name::RetryStorm, &[1.5], 1);
    let parts = [own].into_iter().chain(rivals).chain(scenes);
    parts.chain([storm]).collect()
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
    /// Yardsticks of five shapes.
    const YARDSTICKS_S: u64 = 5 * 25;

    fn seconds(set: Set) -> u64 {
        let parts = parts(set);
        let runs = parts.iter().map(|part| {
            part.offered.len() as u64 * part.seeds * (AROUND_S + part.length.as_secs())
        });
        YARDSTICKS_S + runs.sum::<u64>()
    }

    #[test]
    fn the_full_set_takes_at_most_20_minutes_and_the_short_one_8() {
        assert!(seconds(Set::Full) <= 20 * 60, "{}", seconds(Set::Full));
        assert!(seconds(Set::Short) <= 8 * 60, "{}", seconds(Set::Short));
    }
}
