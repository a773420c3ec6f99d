//! The client in a process that gets no seat, against an agent's socket.

use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, waitpid};
use tempfile::TempDir;
use tidegate_abi::decision::{Reason, RefusalKind};
use tidegate_segment::os::child::fork;

use crate::test_agent::{Answers, Behaviour, TestAgent};
use crate::test_rules::{concurrency, qps};
use crate::tests::{client, room, until};
use crate::{Client, Permit, Refused, Resource, Transport};

/// An agent that gives no seats, with a rule of 3 at a time.
fn agent(dir: &TempDir) -> TestAgent {
    let manners = Behaviour {
        no_seats: true,
        ..Behaviour::default()
    };
    TestAgent::start(dir.path(), manners, &[("a", concurrency(3))])
}

fn connect(dir: &TempDir) -> (Client, Resource) {
    let client = client(dir);
    let resource = client.resource("a").unwrap();
    (client, resource)
}

fn is_decided(verdict: &Result<Permit, Refused>) -> bool {
    verdict.as_ref().is_ok_and(Permit::decided)
}

#[test]
fn each_request_is_a_question_to_the_agent() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    let status = client.status();
    assert_eq!(
        (status.connected, status.door),
        (true, Some(Transport::Socket))
    );
    let permits = [(); 3].map(|()| resource.enter().unwrap());
    assert!(permits.iter().all(Permit::decided));
    assert_eq!(agent.inflight("a"), 3);
    let refused = resource.enter().unwrap_err();
    assert_eq!(
        (refused.kind, refused.reason, refused.rule),
        (RefusalKind::Flow, Reason::Concurrency, Some(0))
    );
    assert_eq!((refused.value, refused.limit), (3, 3));
    assert!(refused.retry);
    assert!(refused.retry_after >= Duration::from_millis(100));
    let [ok, error, dropped] = permits;
    ok.ok();
    error.error();
    drop(dropped);
    let state = agent.state();
    let slot = state.find("a").unwrap();
    let counts = state.ledger.node_counts(&state.board, slot);
    assert_eq!((counts.success, counts.error, counts.inflight), (1, 1, 0));
    assert_eq!(client.status().open, 0);
}

#[test]
fn a_ledger_that_others_have_written_over_is_left_to_the_agent() {
    let dir = room();
    let manners = Behaviour {
        spoiled_ledger: true,
        ..Behaviour::default()
    };
    let agent = TestAgent::start(dir.path(), manners, &[("a", concurrency(3))]);
    let (client, resource) = connect(&dir);
    assert_eq!(client.status().door, Some(Transport::Socket));
    let held: Vec<Permit> = (0..5).filter_map(|_try| resource.enter().ok()).collect();
    assert_eq!((held.len(), agent.inflight("a")), (3, 3));
    assert_eq!(client.status().open, 0);
}

#[test]
fn threads_take_turns_and_every_answer_finds_its_question() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    std::thread::scope(|scope| {
        for _thread in 0..3 {
            scope.spawn(|| {
                for _turn in 0..50 {
                    // Three at a time fit; whoever got another's answer would be refused.
                    resource.enter().unwrap().ok();
                }
            });
        }
    });
    assert_eq!(agent.inflight("a"), 0);
    assert_eq!(client.status().open, 0);
}

#[test]
fn what_gets_no_answer_in_time_is_admitted_and_counted() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    let held = resource.enter().unwrap();
    agent.state().manners.answers = Answers::None;
    let begin = Instant::now();
    let open = resource.enter().unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(50));
    assert!(!open.decided());
    assert!(!resource.enter().unwrap().decided(), "nobody to ask");
    assert_eq!(client.status().open, 2);
    until("the end of the permit", || agent.inflight("a") == 0);
    agent.state().manners.answers = Answers::All;
    until("an agent that answers", || is_decided(&resource.enter()));
    let again = resource.enter().unwrap();
    held.ok();
    assert_eq!(agent.inflight("a"), 1, "a permit of the lost connection");
    again.ok();
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn an_agent_that_cannot_decide_is_asked_again_on_the_same_connection() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    let held = resource.enter().unwrap();
    agent.state().manners.answers = Answers::Busy;
    assert!(!resource.enter().unwrap().decided());
    assert_eq!(client.status().open, 1);
    agent.state().manners.answers = Answers::All;
    assert!(is_decided(&resource.enter()));
    assert_eq!(agent.inflight("a"), 1);
    held.ok();
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn an_agent_that_goes_leaves_no_rules_and_one_with_seats_gives_one() {
    let dir = room();
    let first = agent(&dir);
    let (client, resource) = connect(&dir);
    let held = resource.enter().unwrap();
    first.kill();
    until("the end of the session", || !client.status().connected);
    assert!(!resource.enter().unwrap().decided());
    assert_eq!(client.status().open, 1);
    let second = TestAgent::start(dir.path(), Behaviour::default(), &[("a", qps(0))]);
    until("the rule of the new agent", || resource.enter().is_err());
    assert_eq!(client.status().door, Some(Transport::Shm));
    held.ok();
    assert_eq!(second.inflight("a"), 0);
}

#[test]
fn a_child_asks_on_a_connection_of_its_own() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    let mut held = Some(resource.enter().unwrap());
    let child = fork(|| {
        drop(held.take());
        let is_own = is_decided(&resource.enter());
        // It ends with a request in flight.
        let left = std::mem::ManuallyDrop::new(resource.enter());
        u8::from(!is_own) + 2 * u8::from(!is_decided(&left))
    });
    let ended = waitpid(Some(child.unwrap()), WaitOptions::empty());
    assert_eq!(ended.unwrap().unwrap().1.exit_status(), Some(0));
    until("the end of the child's permit", || agent.inflight("a") == 1);
    assert!(is_decided(&resource.enter()), "the parent's goes on");
    held.unwrap().ok();
    assert_eq!(agent.inflight("a"), 0);
    assert_eq!(client.status().open, 0);
}

#[test]
fn a_client_that_is_dropped_ends_its_connections() {
    let dir = room();
    let agent = agent(&dir);
    let (client, resource) = connect(&dir);
    let held = resource.enter().unwrap();
    drop(client);
    drop(resource);
    until("the ends of the connections", || agent.connections() == 0);
    assert_eq!(agent.inflight("a"), 0);
    held.ok();
}
