//! Rules that let wait, under a real agent: callers on threads, and tasks that share one thread, each on the pages
//! and in a process without a seat.

#![cfg(test)]

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Request, Response};
use serde_json::Value;
use tidegate_client::tower::TidegateLayer;
use tidegate_client::{Client, Reason, Resource, Transport};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, ONE_SEAT};
use tidegate_tests::until::{self, SOON};
use tokio::runtime::{Builder, Runtime};
use tower_layer::Layer as _;
use tower_service::Service;

/// One turn a second, and a queue of two.
const PACED: &str = "[[flow]]\nresource = \"paced\"\ncount = 1\nbehavior = \"pace\"\n\
                     max_queueing_time = \"2s\"\n";

/// Turns are a second apart.
const TURN: Duration = Duration::from_secs(1);
/// The same by the clock of a test: that of the pages is calibrated, and a fresh agent's is a little off.
const NEARLY: Duration = Duration::from_millis(990);

struct Host {
    agent: Agent,
    paced: Resource,
    free: Resource,
    /// Who has the only seat, where this process has none.
    _seated: Option<Actor>,
}

/// Ways for a process to ask.
const DOORS: [Transport; 2] = [Transport::Shm, Transport::Socket];

fn host(door: Transport) -> Host {
    let agent = Agent::start(PACED, &format!("{CALM}{ONE_SEAT}"));
    let seated = (door == Transport::Socket).then(|| Actor::start(&agent.runtime_dir()));
    let client = Client::builder()
        .runtime_dir(agent.runtime_dir())
        .connect()
        .expect("the agent serves");
    assert_eq!(client.status().door, Some(door));
    let resource = |name| client.resource(name).expect("it is a name");
    Host {
        paced: resource("paced"),
        free: resource("free"),
        agent,
        _seated: seated,
    }
}

/// A runtime of this thread alone.
fn one_thread() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime starts")
}

/// What the agent counted on the paced resource.
fn counted(agent: &Agent) -> Value {
    agent
        .get("/v1/explain?resource=paced")
        .get("counts")
        .cloned()
        .unwrap_or_default()
}

fn refused_by_flow(counts: &Value) -> Option<u64> {
    counts.get("refused_total")?.get("flow")?.as_u64()
}

#[test]
fn a_thread_sleeps_until_its_turn() {
    for door in DOORS {
        let host = host(door);
        let Host { agent, paced, .. } = &host;
        let begin = Instant::now();
        let first = paced.enter().expect("nobody was there before");
        let second = paced.enter().expect("its turn comes");
        assert!(begin.elapsed() >= NEARLY, "{:?}", begin.elapsed());
        assert_eq!(first.waited(), Duration::ZERO);
        assert!(second.waited() > Duration::ZERO && second.waited() <= TURN);
        assert_eq!(agent.inflight("paced"), 2);
    }
}

#[test]
fn who_waits_for_a_turn_keeps_no_other_thread_from_its_own() {
    for door in DOORS {
        let host = host(door);
        let Host { paced, free, .. } = &host;
        let begin = Instant::now();
        paced.enter().expect("nobody was there before").ok();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| paced.enter().expect("its turn comes"));
            let mut others = 0;
            while !waiter.is_finished() {
                free.enter().expect("no rule stands here").ok();
                others += 1;
            }
            assert!(waiter.join().expect("it waited").decided());
            assert!(others > 10, "{others} in {:?}", begin.elapsed());
        });
        assert!(begin.elapsed() >= NEARLY, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_caller_waits_no_longer_than_it_says() {
    for door in DOORS {
        let host = host(door);
        let Host { agent, paced, .. } = &host;
        paced.enter().expect("nobody was there before").ok();
        let at_once = paced.ask().wait_at_most(Duration::ZERO).enter();
        let refused = at_once.expect_err("the turn is a second away");
        assert_eq!((refused.reason, refused.retry), (Reason::Queue, true));
        assert!(refused.retry_after > Duration::ZERO);
        // The turn of the one before is lost: this one has the next.
        let patient = paced.ask().wait_at_most(2 * TURN).enter();
        assert!(patient.expect("two turns are time enough").waited() > Duration::ZERO);
        assert_eq!(refused_by_flow(&counted(agent)), Some(1));
    }
}

#[test]
fn tasks_of_one_thread_wait_side_by_side() {
    for door in DOORS {
        let host = host(door);
        let Host {
            agent, paced, free, ..
        } = &host;
        let order = RefCell::new(Vec::new());
        let ask = async |name: &'static str, resource: &Resource| {
            let permit = resource.enter_async_with(tokio::time::sleep).await;
            let waited = permit.expect("its turn comes").waited();
            order.borrow_mut().push(name);
            waited
        };
        let begin = Instant::now();
        let waited = one_thread().block_on(async {
            ask("first", paced).await;
            tokio::join!(ask("second", paced), ask("third", paced), ask("free", free))
        });
        // A task that blocked the thread would have kept the free one behind it.
        assert_eq!(*order.borrow(), ["first", "free", "second", "third"]);
        let (second, third, free) = waited;
        assert!(second > Duration::ZERO && second < third && free == Duration::ZERO);
        // Both wait at once: the later one ends two turns after the first, not three.
        assert!(begin.elapsed() >= 2 * NEARLY, "{:?}", begin.elapsed());
        assert_eq!(agent.inflight("paced"), 0);
    }
}

#[test]
fn a_task_that_goes_away_leaves_nothing_behind() {
    for door in DOORS {
        let host = host(door);
        let Host { agent, paced, .. } = &host;
        one_thread().block_on(async {
            paced.enter().expect("nobody was there before").ok();
            let asked = paced.enter_async_with(tokio::time::sleep);
            let gone = tokio::time::timeout(TURN / 10, asked).await;
            assert!(gone.is_err(), "the turn is a second away");
        });
        let counts = counted(agent);
        assert_eq!(refused_by_flow(&counts), Some(1), "{counts}");
        assert_eq!(counts.get("inflight"), Some(&Value::from(0)), "{counts}");
    }
}

#[test]
fn a_task_waits_by_our_clock_whatever_its_timer_says() {
    for door in DOORS {
        let host = host(door);
        let Host { paced, .. } = &host;
        let begin = Instant::now();
        one_thread().block_on(async {
            paced.enter().expect("nobody was there before").ok();
            // A timer that is always too early.
            let permit = paced
                .enter_async_with(|_time| tokio::task::yield_now())
                .await;
            permit.expect("its turn comes").ok();
        });
        assert!(begin.elapsed() >= NEARLY, "{:?}", begin.elapsed());
    }
}

/// A service that answers with the path it was asked for.
#[derive(Clone)]
struct Echo;

impl Service<Request<()>> for Echo {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, req: Request<()>) -> Self::Future {
        ready(Ok(Response::new(req.uri().path().to_owned())))
    }
}

#[test]
fn requests_behind_the_layer_wait_without_the_thread() {
    for door in DOORS {
        let host = host(door);
        let Host { agent, paced, .. } = &host;
        let paced = paced.clone();
        let pick = move |req: &Request<()>| (req.uri().path() != "/free").then(|| paced.clone());
        let layer = TidegateLayer::new(pick, tokio::time::sleep);
        let order = RefCell::new(Vec::new());
        let get = async |path: &'static str| {
            let request = Request::get(path).body(()).expect("a request");
            let Ok(response) = layer.layer(Echo).call(request).await;
            order.borrow_mut().push(path);
            (response.status().as_u16(), response.into_body())
        };
        let answers = one_thread().block_on(async {
            get("/1").await;
            tokio::join!(get("/2"), get("/3"), get("/4"), get("/free"))
        });
        // The fourth finds the queue full; neither it nor the free one waits for those in the queue.
        assert_eq!(*order.borrow(), ["/1", "/4", "/free", "/2", "/3"]);
        let done = |path: &str| (200, path.to_owned());
        let full = (429, String::new());
        assert_eq!(answers, (done("/2"), done("/3"), full, done("/free")));
        until::holds("permits that are given back", SOON, || {
            agent.inflight("paced") == 0
        });
    }
}
