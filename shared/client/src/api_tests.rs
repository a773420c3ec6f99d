//! What a service may do with permits, on purpose and by mistake.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::process::{WaitOptions, waitpid};
use tempfile::TempDir;
use tidegate_segment::os::child::fork;
use tidegate_segment::sync::{Ordering, Word};

use crate::test_agent::{Behaviour, TestAgent};
use crate::test_rules::{concurrency, qps};
use crate::tests::{client, room, until};
use crate::{Client, Observer, Outcome, Permit, Refused, Resource, RunError};

fn guarded(limit: u32) -> (TempDir, TestAgent, Resource) {
    let dir = room();
    let agent = TestAgent::start(
        dir.path(),
        Behaviour::default(),
        &[("a", concurrency(limit))],
    );
    let resource = client(&dir).resource("a").unwrap();
    (dir, agent, resource)
}

/// How many ended well, failed, and are in flight.
fn ended(agent: &TestAgent) -> (u64, u64, u64) {
    let state = agent.state();
    let slot = state.find("a").unwrap();
    let counts = state.ledger.node_counts(&state.board, slot);
    (counts.success, counts.error, counts.inflight)
}

/// The output of a future that is ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn field_o16_work_that_is_run_records_how_it_ended() {
    let (_dir, agent, resource) = guarded(1);
    assert_eq!(resource.run(|| Ok::<_, ()>(7)), Ok(7));
    assert_eq!(ended(&agent), (1, 0, 0));
    let failed = resource.run(|| Err::<(), _>("broken"));
    assert_eq!(failed, Err(RunError::Failed("broken")));
    assert_eq!(ended(&agent), (1, 1, 0));
    // An early return inside is a failure, not a permit that is dropped.
    let early = resource.run(|| {
        let number: i32 = "seven".parse()?;
        Ok::<_, std::num::ParseIntError>(number)
    });
    assert!(matches!(early, Err(RunError::Failed(_))));
    assert_eq!(ended(&agent), (1, 2, 0));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        resource.run(|| -> Result<(), ()> { panic!("in the work") })
    }));
    assert!(panicked.is_err(), "a panic goes on");
    assert_eq!(ended(&agent), (1, 3, 0));
    let _held = resource.enter().unwrap();
    let refused = resource.run(|| -> Result<(), ()> { panic!("it is not done") });
    assert_eq!(refused.unwrap_err().refused().unwrap().limit, 1);
}

#[test]
fn field_o16_a_task_that_is_run_records_how_it_ended_and_one_that_is_cancelled_is_ignored() {
    let (_dir, agent, resource) = guarded(1);
    let sleep = |_time: Duration| std::future::ready(());
    let done = now(resource.run_async_with(sleep, async || Ok::<_, ()>(7)));
    assert_eq!(done, Ok(7));
    let failed = now(resource.run_async_with(sleep, async || Err::<(), _>("broken")));
    assert_eq!(failed, Err(RunError::Failed("broken")));
    assert_eq!(ended(&agent), (1, 1, 0));
    {
        let never = async || std::future::pending::<Result<(), ()>>().await;
        let mut task = std::pin::pin!(resource.run_async_with(sleep, never));
        let mut context = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(ended(&agent), (1, 1, 1));
    }
    assert_eq!(ended(&agent), (1, 1, 0), "its caller went away");
    let panics = async || -> Result<(), ()> { panic!("in the task") };
    let task = AssertUnwindSafe(|| now(resource.run_async_with(sleep, panics)));
    assert!(catch_unwind(task).is_err(), "a panic goes on");
    assert_eq!(ended(&agent), (1, 2, 0));
}

#[test]
fn field_o16_a_dropped_permit_counts_as_was_chosen() {
    let (_dir, agent, resource) = guarded(1);
    drop(resource.enter().unwrap());
    assert_eq!(ended(&agent), (0, 0, 0));
    drop(resource.enter().unwrap().on_drop(Outcome::Error));
    assert_eq!(ended(&agent), (0, 1, 0));
    drop(resource.enter().unwrap().on_drop(Outcome::Ok));
    assert_eq!(ended(&agent), (1, 1, 0));
    resource.enter().unwrap().on_drop(Outcome::Error).ok();
    assert_eq!(ended(&agent), (2, 1, 0), "what is said counts");
    resource.enter().unwrap().record(&Err::<(), _>("broken"));
    assert_eq!(ended(&agent), (2, 2, 0));
}

#[test]
fn field_o16_a_fallback_takes_the_place_of_what_is_refused() {
    let (_dir, _agent, resource) = guarded(0);
    assert_eq!(resource.enter_or("cached").unwrap_err(), "cached");
    let limit = resource.enter_or_else(|refused| refused.limit);
    assert_eq!(limit.unwrap_err(), 0);
    resource.try_enter().unwrap_err();
    resource.ask().try_enter().unwrap_err();
}

#[test]
fn field_o16_a_permit_is_four_words_whatever_it_holds() {
    assert_eq!(size_of::<Permit>(), 32);
    let dir = room();
    let agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", qps(100))]);
    let resource = client(&dir).resource("a").unwrap();
    let many = std::num::NonZeroU32::new(7).unwrap();
    let permits: Vec<Permit> = (0..5)
        .map(|_turn| {
            resource
                .ask()
                .count(many)
                .enter()
                .unwrap()
                .on_drop(Outcome::Error)
        })
        .collect();
    assert_eq!(ended(&agent), (0, 0, 5));
    assert!(
        permits
            .iter()
            .all(|permit| permit.decided() && permit.waited().is_zero())
    );
    let mut permits = permits.into_iter();
    permits.next().unwrap().ok();
    assert_eq!(ended(&agent), (7, 0, 4));
    drop(permits);
    assert_eq!(ended(&agent), (7, 28, 0));
}

#[test]
fn field_o16_a_permit_ends_on_another_thread_than_it_began_on() {
    let (_dir, agent, resource) = guarded(200);
    let (give, take) = channel::<Permit>();
    std::thread::scope(|scope| {
        scope.spawn(move || take.iter().for_each(Permit::ok));
        for _permit in 0..100 {
            give.send(resource.enter().unwrap()).unwrap();
        }
        drop(give);
    });
    assert_eq!(ended(&agent), (100, 0, 0));
}

#[test]
fn field_o16_a_permit_that_is_kept_over_a_fork_or_the_agents_end_harms_nobody() {
    let (dir, agent, resource) = guarded(10);
    let many = std::num::NonZeroU32::new(2).unwrap();
    let ask = || resource.ask().count(many).enter().unwrap();
    let mut kept = Some([resource.enter().unwrap(), ask()]);
    let child = fork(|| {
        // Dropped at the end of a child, as by a destructor at exit.
        drop(kept.take());
        0
    });
    let ended_so = waitpid(Some(child.unwrap()), WaitOptions::empty()).unwrap();
    assert_eq!(ended_so.unwrap().1.exit_status(), Some(0));
    assert_eq!(agent.inflight("a"), 2, "they are the parent's");
    agent.kill();
    let next = TestAgent::start(dir.path(), Behaviour::default(), &[("a", concurrency(10))]);
    let own = || resource.enter().unwrap();
    until("a seat at the next agent", || {
        drop(own());
        next.connections() == 1 && next.state().find("a").is_some()
    });
    drop(kept);
    assert_eq!(next.inflight("a"), 0, "they belong to the life before");
    let [first, second] = [own(), ask()];
    first.ok();
    second.ok();
    assert_eq!(next.inflight("a"), 0);
}

#[test]
fn field_o16_a_permit_that_is_leaked_stays_in_flight_until_its_process_ends() {
    let (_dir, agent, resource) = guarded(3);
    let _leaked = ManuallyDrop::new(resource.enter().unwrap());
    assert_eq!(agent.inflight("a"), 1);
    assert_eq!(resource.run(|| Ok::<_, ()>(())), Ok(()));
    assert_eq!(agent.inflight("a"), 1);
    // The end of a process takes its seat away.
    agent.state().writers.seats.revoke(1);
    assert_eq!(agent.inflight("a"), 0);
}

/// Counts what it hears, and panics where it is told to.
#[derive(Default)]
struct Ear {
    refused: Word0,
    open: Word0,
}

/// A count that starts at none.
struct Word0(Word);

impl Default for Word0 {
    fn default() -> Self {
        Self(Word::new(0))
    }
}

struct Shared(Arc<Ear>, bool);

impl Observer for Shared {
    fn refused(&self, resource: &str, refused: &Refused) {
        assert_eq!((resource, refused.limit), ("a", 0));
        self.0.refused.0.count(1);
        assert!(!self.1, "as it was told to");
    }
    fn admitted_open(&self, _resource: &str) {
        self.0.open.0.count(1);
    }
}

#[test]
fn field_o16_an_observer_hears_refusals_and_its_panic_changes_no_decision() {
    let dir = room();
    let ear = Arc::new(Ear::default());
    let observed = |panics| {
        let builder = Client::builder().runtime_dir(dir.path());
        let observer = Shared(Arc::clone(&ear), panics);
        builder.observer(observer).connect().unwrap()
    };
    let without_agent = observed(false);
    let resource = without_agent.resource("a").unwrap();
    resource.enter().unwrap().ok();
    assert_eq!(ear.open.0.load(Ordering::Relaxed), 1);
    drop((without_agent, resource));
    let _agent = TestAgent::start(dir.path(), Behaviour::default(), &[("a", qps(0))]);
    let client = observed(true);
    let resource = client.resource("a").unwrap();
    let many = std::num::NonZeroU32::new(2).unwrap();
    resource.enter().unwrap_err();
    resource.ask().count(many).enter().unwrap_err();
    assert_eq!(ear.refused.0.load(Ordering::Relaxed), 2);
    assert_eq!(client.status().observer_panics, 2);
}

#[test]
fn field_o16_the_id_of_a_rule_is_asked_for_once() {
    let (dir, agent, resource) = guarded(0);
    let client = client(&dir);
    let rule = resource.enter().unwrap_err().rule.unwrap();
    until("a connection", || client.status().connected);
    assert_eq!(client.rule_id(rule).as_deref(), Some("first"));
    agent.state().manners.answers = crate::test_agent::Answers::None;
    assert_eq!(client.rule_id(rule).as_deref(), Some("first"), "it is kept");
    assert_eq!(client.rule_id(rule + 1), None);
}
