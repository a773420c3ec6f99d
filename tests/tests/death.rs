//! Permits of processes that die come back, wherever they were killed.

#![cfg(test)]

use std::time::Duration;

use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::SOON;

/// A concurrency rule that nobody reaches: in flight is counted, nothing is refused.
const RULE: &str = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 100000\n";

/// Two ticks: the deaths may fall anywhere into the first one.
const WITHIN_A_TICK: Duration = Duration::from_millis(200);

/// Rounds of kills; after each, exactly the permits of the living are in flight.
const ROUNDS: u32 = 20;
/// Processes that breed and kill at the same time, and how many each kills in a round: 2,000 in all.
const BREEDERS: usize = 4;
const KILLS_OF_A_ROUND: u32 = 25;

#[test]
fn alone_permits_of_killed_processes_come_back_within_a_tick() {
    let agent = Agent::start(RULE, CALM);
    let mut actors: Vec<Actor> = (0..8)
        .map(|_process| Actor::start(&agent.runtime_dir()))
        .collect();
    for actor in &mut actors {
        assert_eq!(actor.ask("take order 5"), "taken 5 refused 0");
    }
    agent.wait_for_inflight("order", 40, SOON);
    for actor in &mut actors[..4] {
        actor.kill();
    }
    let took = agent.wait_for_inflight("order", 20, SOON);
    assert!(took <= WITHIN_A_TICK, "it took {took:?}");
    for actor in &mut actors[4..] {
        assert_eq!(actor.ask("give 5"), "held 0");
    }
    agent.wait_for_inflight("order", 0, SOON);
}

#[test]
fn alone_two_thousand_kills_in_a_tight_loop_leave_exactly_what_the_living_hold() {
    let agent = Agent::start(RULE, CALM);
    let start = |_process| Actor::start(&agent.runtime_dir());
    let mut breeders: Vec<Actor> = (0..BREEDERS).map(start).collect();
    for actor in &mut breeders {
        assert_eq!(actor.ask("take order 5"), "taken 5 refused 0");
    }
    for _round in 0..ROUNDS {
        for actor in &mut breeders {
            actor.say(&format!("breed order {KILLS_OF_A_ROUND}"));
        }
        for actor in &breeders {
            assert_eq!(actor.hear(), format!("killed {KILLS_OF_A_ROUND}"));
        }
        agent.wait_for_inflight("order", 20, SOON);
    }
    for actor in &mut breeders {
        assert_eq!(actor.ask("give 5"), "held 0");
    }
    agent.wait_for_inflight("order", 0, SOON);
}
