//! Fork, exec and leaked descriptors corrupt nothing.

#![cfg(test)]

use tidegate_tests::actor::{Actor, kill_descendant};
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::until::SOON;

const RULE: &str = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 10\n";

fn start() -> (Agent, Actor) {
    let agent = Agent::start(RULE, CALM);
    let mut actor = Actor::start(&agent.runtime_dir());
    assert_eq!(actor.ask("take order 4"), "taken 4 refused 0");
    agent.wait_for_inflight("order", 4, SOON);
    (agent, actor)
}

#[test]
fn a_child_that_drops_its_parents_permits_gives_none_back() {
    let (agent, mut actor) = start();
    assert_eq!(actor.ask("fork drop"), "dropped");
    assert_eq!(agent.inflight("order"), 4);
    assert_eq!(actor.ask("take order 10"), "taken 6 refused 4");
    assert_eq!(actor.ask("give 10"), "held 0");
    agent.wait_for_inflight("order", 0, SOON);
}

#[test]
fn a_child_enters_for_itself_and_outlives_its_parent() {
    let (agent, mut actor) = start();
    let answer = actor.ask("fork take order 10");
    let (pid, taken) = answer.split_once(' ').unwrap();
    assert_eq!(taken, "taken 6 refused 4");
    agent.wait_for_inflight("order", 10, SOON);
    // The child keeps the descriptors that it inherited open; the death is seen all the same.
    actor.kill();
    agent.wait_for_inflight("order", 6, SOON);
    kill_descendant(pid);
    agent.wait_for_inflight("order", 0, SOON);
}

#[test]
fn a_program_that_replaces_itself_leaves_its_permits() {
    let (agent, mut actor) = start();
    assert_eq!(actor.ask("exec"), "idle");
    agent.wait_for_inflight("order", 0, SOON);
    assert_eq!(actor.ask("still here"), "still here");
}

#[test]
fn a_child_of_a_process_without_a_seat_outlives_its_parent() {
    let agent = Agent::start(RULE, &format!("{CALM}{ONE_SEAT}"));
    let _seated = Actor::start(&agent.runtime_dir());
    let mut actor = Actor::start(&agent.runtime_dir());
    assert_eq!(actor.ask("door"), "socket");
    assert_eq!(actor.ask("take order 4"), "taken 4 refused 0");
    assert_eq!(actor.ask("fork drop"), "dropped");
    agent.wait_for_inflight("order", 4, SOON);
    let answer = actor.ask("fork take order 10");
    let (pid, taken) = answer.split_once(' ').unwrap();
    assert_eq!(taken, "taken 6 refused 4");
    agent.wait_for_inflight("order", 10, SOON);
    // The child has closed its copy of the connection that the parent's permits end with.
    actor.kill();
    agent.wait_for_inflight("order", 6, SOON);
    kill_descendant(pid);
    agent.wait_for_inflight("order", 0, SOON);
}
