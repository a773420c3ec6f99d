//! The interface as another crate sees it, without an agent: the same on Linux and where the client is a stub
//! (`--cfg tidegate_stub`).
#![cfg(test)]

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_client::argument::Arg;
use tidegate_client::{
    Class, Client, ConnectErrorKind, Direction, EntryRequest, Observer, OnMissingAgent, Outcome,
    Resource, RunError,
};

/// A client that finds no agent.
fn client() -> Client {
    let builder = Client::builder().runtime_dir("/nowhere/at/all");
    builder.connect().expect("an agent is no must")
}

fn orders(client: &Client) -> Resource {
    client.resource("orders").expect("a name")
}

#[test]
fn field_o16_each_way_to_ask_admits_and_counts_where_there_is_no_agent() {
    let client = client();
    let orders = orders(&client);
    let ask = || {
        orders
            .ask()
            .count(NonZeroU32::MIN)
            .class(Class::Sheddable)
            .direction(Direction::Out)
            .origin("shop")
            .context("web")
            .args(&[Arg::One(7)])
            .prioritized(true)
            .wait_at_most(Duration::ZERO)
    };
    orders.enter().expect("open").ok();
    orders.try_enter().expect("open").error();
    orders.enter_or(()).expect("open").record(&Ok::<(), ()>(()));
    drop(orders.enter().expect("open").on_drop(Outcome::Error));
    ask().enter().expect("open").ignore();
    ask().try_enter().expect("open").ok();
    EntryRequest::of(orders.clone())
        .text_arg("u1")
        .ask()
        .enter()
        .expect("open")
        .ok();
    assert_eq!(orders.run(|| Ok::<u32, ()>(7)), Ok(7));
    assert_eq!(
        orders.run(|| Err::<(), u32>(7)),
        Err(RunError::Failed(7)),
        "the work's own failure"
    );
    let permit = orders.enter().expect("open");
    assert!(!permit.decided());
    assert_eq!(permit.waited(), Duration::ZERO);
    permit.ok();
    let status = client.status();
    assert_eq!(status.open, 10);
    assert!(!status.connected);
    assert!(status.door.is_none() && status.last_error.is_some());
    assert_eq!(client.rule_id(0), None);
}

#[test]
fn field_o16_a_client_that_needs_an_agent_hears_that_there_is_none() {
    let builder = Client::builder().runtime_dir("/nowhere/at/all");
    let strict = builder.on_missing_agent(OnMissingAgent::Fail);
    let error = strict.connect().expect_err("there is no agent");
    assert_eq!(error.kind(), ConnectErrorKind::NoAgent);
    assert!(!error.to_string().is_empty());
    assert!(client().resource("a\nb").is_err(), "a name is checked");
}

/// Keeps what it hears, and panics then.
struct Panicking(Arc<Mutex<Vec<String>>>);

impl Observer for Panicking {
    fn admitted_open(&self, resource: &str) {
        let mut heard = self.0.lock().expect("nobody panics with it");
        heard.push(resource.to_owned());
        drop(heard);
        std::panic::panic_any("an observer's own fault");
    }
}

#[test]
fn field_o16_an_observer_hears_what_is_admitted_open_and_may_panic() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().runtime_dir("/nowhere/at/all");
    let observed = builder.observer(Panicking(Arc::clone(&heard)));
    let client = observed.connect().expect("open");
    orders(&client).enter().expect("open").ok();
    assert_eq!(*heard.lock().expect("nobody panics with it"), ["orders"]);
    assert_eq!(client.status().observer_panics, 1);
}
