//! The client against an agent's socket and pages.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_abi::decision::{Reason, RefusalKind};

use crate::test_agent::{Answers, Behaviour, TestAgent};
use crate::test_rules::{concurrency, qps};
use crate::{Client, ConnectError, ConnectErrorKind, OnMissingAgent, Resource, Transport};

/// Longest wait for something that the keeper does by itself.
const SOON: Duration = Duration::from_secs(10);

pub(crate) fn room() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn client(dir: &TempDir) -> Client {
    Client::builder().runtime_dir(dir.path()).connect().unwrap()
}

fn strict(dir: &TempDir) -> Result<Client, ConnectError> {
    let choice = OnMissingAgent::Fail;
    let builder = Client::builder().runtime_dir(dir.path());
    builder.on_missing_agent(choice).connect()
}

/// Looks again and again, with the processor given away in between.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < SOON, "not in time: {what}");
        std::thread::yield_now();
    }
}

fn admitted(resource: &Resource, tries: u32) -> u32 {
    (0..tries).fold(0, |count, _try| match resource.enter() {
        Ok(permit) => {
            permit.ok();
            count + 1
        }
        Err(_refused) => count,
    })
}

#[test]
fn a_rule_refuses_and_says_why() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(2))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let first = resource.enter().unwrap();
    let second = resource.enter().unwrap();
    assert!(first.decided());
    assert_eq!(agent.inflight("a"), 2);
    let refused = resource.enter().unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Flow);
    assert_eq!(refused.reason, Reason::Concurrency);
    assert_eq!((refused.value, refused.limit), (2, 2));
    assert_eq!(refused.rule, Some(0));
    assert!(refused.retry);
    assert!(refused.retry_after >= Duration::from_millis(100));
    first.ok();
    drop(second);
    assert_eq!(agent.inflight("a"), 0);
    assert_eq!(client.status().open, 0);
    assert!(client.status().connected);
    assert_eq!(client.status().door, Some(Transport::Shm));
}

#[test]
fn a_count_takes_as_many_passes() {
    let dir = room();
    let _agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", qps(10))]);
    let resource = client(&dir).resource("a").unwrap();
    let eleven = NonZeroU32::new(11).unwrap();
    let refused = resource.ask().count(eleven).enter().unwrap_err();
    assert_eq!(refused.reason, Reason::Qps);
    let huge = resource.ask().count(NonZeroU32::MAX).enter();
    assert_eq!(huge.unwrap_err().reason, Reason::Qps);
}

#[test]
fn names_that_cannot_be_are_refused_with_the_reason() {
    let dir = room();
    let client = client(&dir);
    let message = |name: &str| client.resource(name).unwrap_err().to_string();
    assert_eq!(
        message(""),
        "resource name \"\" is empty; a name has 1 to 255 bytes"
    );
    assert!(message(&"x".repeat(256)).contains("longer than 255 bytes"));
    assert!(message("a\nb").contains("control character"));
}

#[test]
fn without_an_agent_everything_is_admitted_and_counted_until_one_comes() {
    let dir = room();
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    assert_eq!(admitted(&resource, 50), 50);
    let status = client.status();
    assert!(!status.connected);
    assert_eq!((status.open, status.door), (50, None));
    assert!(status.last_error.unwrap().contains("is the agent running"));
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(0))]);
    until("the rule of the agent", || resource.enter().is_err());
    assert!(client.status().connected);
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn a_strict_client_says_that_there_is_no_agent() {
    let dir = room();
    let error = strict(&dir).unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::NoAgent);
    assert!(error.to_string().contains("gate.sock: connect: "));
}

#[test]
fn an_agent_that_cannot_be_trusted_or_understood_is_none() {
    let expect = |manners: Behaviour, part: &str| {
        let dir = room();
        let _agent = TestAgent::start(dir.path(), manners, &[]);
        let message = strict(&dir).unwrap_err().to_string();
        assert!(message.contains(part), "{message:?} has no {part:?}");
    };
    let usual = Behaviour::default;
    expect(
        Behaviour {
            version: Some(9),
            ..usual()
        },
        "speaks version 9, this program 1",
    );
    expect(
        Behaviour {
            unsealed_board: true,
            ..usual()
        },
        "FUTURE_WRITE",
    );
    expect(
        Behaviour {
            answers: Answers::None,
            ..usual()
        },
        "did not answer within 1000 ms",
    );
}

#[test]
fn an_agent_that_goes_leaves_its_rules_and_one_that_comes_is_taken() {
    let dir = room();
    let rules = [("a", concurrency(1)), ("c", concurrency(0))];
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &rules);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let held = resource.enter().unwrap();
    agent.kill();
    until("the end of the session", || !client.status().connected);
    assert!(resource.enter().is_err(), "the rule is still in force");
    let late = client.resource("b").unwrap();
    assert_eq!(admitted(&late, 3), 1, "a new name shares the overflow slot");
    let named = client.resource("c").unwrap();
    assert_eq!(admitted(&named, 3), 0, "the board knows it");
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &rules);
    until("a new session", || client.status().connected);
    let again = resource.enter().unwrap();
    assert_eq!(agent.inflight("a"), 1);
    held.ok();
    assert_eq!(agent.inflight("a"), 1, "a permit of the old session");
    again.ok();
    assert_eq!(agent.inflight("a"), 0);
    assert_eq!(
        client.status().open,
        0,
        "no decision was made without rules"
    );
}

#[test]
fn a_name_that_the_agent_is_slow_with_shares_the_overflow_slot_for_now() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(2))]);
    let client = client(&dir);
    let known = client.resource("a").unwrap();
    agent.state().manners.answers = Answers::None;
    let begin = Instant::now();
    let late = client.resource("b").unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(50));
    assert_eq!(admitted(&late, 3), 1);
    assert_eq!(admitted(&known, 3), 3);
}

#[test]
fn a_seat_that_is_taken_away_is_asked_for_again() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(1))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let held = resource.enter().unwrap();
    agent.state().writers.seats.revoke(1);
    let open = resource.enter().unwrap();
    assert!(!open.decided(), "there is nothing to decide on");
    assert_eq!(client.status().open, 1);
    until("a new seat", || {
        resource.enter().is_ok_and(|permit| permit.decided())
    });
    let again = resource.enter().unwrap();
    drop(held);
    drop(open);
    assert_eq!(agent.inflight("a"), 1);
    again.ok();
    assert_eq!(agent.inflight("a"), 0);
}

#[test]
fn a_client_in_another_time_namespace_lives_in_the_agents_time() {
    for ahead_ns in [3_600_000_000_000, 250_000_000] {
        live_ahead_by(ahead_ns);
    }
}

fn live_ahead_by(ahead_ns: u64) {
    let dir = room();
    let manners = Behaviour {
        ahead_ns,
        ..Behaviour::default()
    };
    let agent = TestAgent::start(dir.path(), manners, &[("a", qps(5))]);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    assert_eq!(admitted(&resource, 5), 5);
    let state = agent.state();
    let slot = state.find("a").unwrap();
    let agents_now_ns = tidegate_segment::clock::monotonic_ns() + ahead_ns;
    let node = state.ledger.node(slot.index).unwrap();
    assert_eq!(node.window(agents_now_ns).sum(), 5);
    assert_eq!(
        state.ledger.seat_faults(1).0,
        0,
        "the heartbeat is fresh for it"
    );
}

#[test]
fn a_client_that_is_dropped_gives_its_seat_up() {
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", qps(5))]);
    let connected = client(&dir);
    let resource = connected.resource("a").unwrap();
    assert_eq!(agent.connections(), 1);
    drop(connected);
    assert!(resource.enter().unwrap().decided(), "a resource keeps it");
    drop(resource);
    until("the end of the connection", || agent.connections() == 0);
}

#[test]
fn field_b8_who_is_turned_away_hears_why_and_comes_back() {
    let dir = room();
    let manners = Behaviour {
        answers: Answers::TurnedAway,
        ..Behaviour::default()
    };
    let agent = TestAgent::start(dir.path(), manners, &[("a", concurrency(1))]);
    // The hello may reach the agent before the end of the connection or after it.
    for _try in 0..20 {
        let error = strict(&dir).unwrap_err().to_string();
        assert!(error.contains("all 2 are taken"), "{error}");
    }
    let client = client(&dir);
    let status = client.status();
    assert!(!status.connected);
    assert!(status.last_error.unwrap().contains("all 2 are taken"));
    agent.state().manners.answers = Answers::All;
    until("a place", || client.status().connected);
    let resource = client.resource("a").unwrap();
    let _held = resource.enter().unwrap();
    resource.enter().unwrap_err();
}

#[test]
fn field_b8_a_service_with_pages_keeps_to_its_rules_while_it_is_turned_away() {
    let dir = room();
    let rules = [("a", concurrency(1))];
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &rules);
    let client = client(&dir);
    let resource = client.resource("a").unwrap();
    let _held = resource.enter().unwrap();
    agent.kill();
    let manners = Behaviour {
        answers: Answers::TurnedAway,
        ..Behaviour::default()
    };
    let _next = TestAgent::start(dir.path(), manners, &rules);
    until("the word of the next agent", || {
        let told = client.status().last_error;
        told.is_some_and(|told| told.contains("all 2 are taken"))
    });
    let refused = resource.enter().unwrap_err();
    assert_eq!(refused.reason, Reason::Concurrency, "the last pages hold");
    assert_eq!(client.status().open, 0);
}

/// Signals that a thread of this process does not take, by the name of the thread.
fn blocked(name: &str) -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let mut statuses = threads
        .map(|thread| std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
    let status = statuses
        .find(|status| status.starts_with(&format!("Name:\t{name}\n")))
        .unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:\t"));
    u64::from_str_radix(line.unwrap(), 16).unwrap()
}

#[test]
fn field_b14_the_library_takes_no_signal_of_the_program() {
    let dir = room();
    let _agent = TestAgent::start(dir.path(), Behaviour::default(), &[]);
    let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let _client = client(&dir);
    let taken = !blocked("tidegate");
    // KILL and STOP cannot be blocked; the C library keeps 32 and 33 for itself.
    let never = [9, 19, 32, 33].map(|number| 1_u64 << (number - 1));
    assert_eq!(taken & !never.iter().sum::<u64>(), 0, "{taken:x}");
    let mask = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("SigBlk:"));
        line.map(str::to_owned)
    };
    let after = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    assert_eq!(
        mask(&own),
        mask(&after),
        "the caller's own signals are as they were"
    );
}
