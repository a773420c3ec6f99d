//! The client in a process that forks, against an agent's socket and pages.

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, waitpid};
use tidegate_segment::os::child::fork;

use crate::Permit;
use crate::test_agent::{Behaviour, TestAgent};
use crate::test_rules::concurrency;
use crate::tests::{client, room, until};

/// What a child found out, as its exit code; 0 stands for all that was hoped for.
fn in_child(work: impl FnOnce() -> u8) -> i32 {
    let child = fork(work).unwrap();
    let (_pid, status) = waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
    status.exit_status().unwrap_or(-1)
}

#[test]
fn a_permit_of_the_parent_is_not_given_back_by_a_child() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(3))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let mut permit = Some(resource.enter().unwrap());
    let code = in_child(|| {
        drop(permit.take());
        0
    });
    assert_eq!(code, 0);
    assert_eq!(agent.inflight("a"), 1, "the parent's request is in flight");
    drop(permit);
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn a_child_takes_a_seat_of_its_own_at_its_first_decision() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(3))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let held = resource.enter().unwrap();
    let code = in_child(|| {
        // On a loaded machine the first decisions may come before the seat; they are counted.
        let deadline = Instant::now() + Duration::from_secs(10);
        let is_open = || resource.enter().is_ok_and(|permit| !permit.decided());
        let mut open = 0;
        while is_open() && Instant::now() < deadline {
            open += 1;
        }
        let seen = (0..5).filter(|_try| resource.enter().is_ok()).count();
        // It ends with a request in flight.
        let left = ManuallyDrop::new(resource.enter());
        let decided = left.as_ref().is_ok_and(Permit::decided);
        u8::from(seen != 5) + 2 * u8::from(!decided) + 4 * u8::from(client.status().open != open)
    });
    assert_eq!(code, 0);
    // The permit that the child left behind is its own: its seat is 2.
    assert_eq!(agent.inflight("a"), 2);
    agent.state().writers.seats.revoke(2);
    assert_eq!(agent.inflight("a"), 1);
    held.ok();
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn a_grandchild_and_the_parent_after_it_decide_for_themselves() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(3))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let code = in_child(|| {
        // On a loaded machine the first decisions may come before the seat.
        let deadline = Instant::now() + Duration::from_secs(10);
        let decided = |code| {
            while Instant::now() < deadline {
                match resource.enter() {
                    Ok(permit) if permit.decided() => return 0,
                    Ok(_open) => std::thread::yield_now(),
                    Err(_refused) => return code,
                }
            }
            code
        };
        // The grandchild forks off a child that has not decided yet, and then off one that has.
        let first = in_child(|| decided(1));
        let own = decided(2);
        let second = in_child(|| decided(3));
        u8::try_from(first).unwrap_or(9) + own + u8::try_from(second).unwrap_or(9)
    });
    assert_eq!(code, 0);
    assert_eq!(agent.inflight("a"), 0);
    assert!(resource.enter().unwrap().decided());
    until("the ends of the children", || agent.connections() == 1);
    assert_eq!(client.status().open, 0);
}
