//! Origins and contexts of services that decide in shared memory.

#![cfg(test)]

use tidegate_client::{Client, Permit, Resource, Transport};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::{self, SOON};

/// Two calls at once for each origin, and three in the context `night`.
const RULES: &str = r#"
[[flow]]
id = "each-origin"
resource = "order"
limit_origin = "other"
grade = "concurrency"
count = 2
[[flow]]
id = "by-night"
resource = "report"
strategy = "chain"
reference = "night"
grade = "concurrency"
count = 3
"#;

fn connect(agent: &Agent) -> Client {
    let builder = Client::builder().runtime_dir(agent.runtime_dir());
    let client = builder.connect().unwrap();
    assert_eq!(client.status().door, Some(Transport::Shm));
    client
}

/// The permits of as many of `tries` calls for an origin as are let in.
fn take(resource: &Resource, origin: &str, tries: u32) -> Vec<Permit> {
    let calls = (0..tries).map(|_try| resource.ask().origin(origin).enter());
    calls.filter_map(Result::ok).collect()
}

#[test]
fn each_origin_has_a_limit_of_its_own_for_all_processes() {
    let agent = Agent::start(RULES, CALM);
    let (client, other) = (connect(&agent), connect(&agent));
    let order = client.resource("order").unwrap();
    let elsewhere = other.resource("order").unwrap();
    let shop = take(&order, "shop", 5);
    assert_eq!(shop.len(), 2);
    assert_eq!(take(&elsewhere, "shop", 5).len(), 0);
    let mut till = take(&elsewhere, "till", 1);
    till.extend(take(&order, "till", 5));
    assert_eq!(till.len(), 2);
    drop(shop);
    assert_eq!(take(&elsewhere, "shop", 5).len(), 2);
    // Of nobody known, the rule asks nothing.
    assert_eq!(take(&order, "", 9).len(), 9);
}

#[test]
fn a_context_has_a_limit_of_its_own() {
    let agent = Agent::start(RULES, CALM);
    let report = connect(&agent).resource("report").unwrap();
    let enter = |context| report.ask().context(context).enter();
    let by_day: Vec<_> = (0..9).filter_map(|_call| enter("day").ok()).collect();
    assert_eq!(by_day.len(), 9);
    let by_night: Vec<_> = (0..9).filter_map(|_call| enter("night").ok()).collect();
    assert_eq!(by_night.len(), 3);
}

#[test]
fn no_number_of_origins_gets_past_the_limit() {
    let agent = Agent::start(RULES, &format!("{CALM}[pages]\nmax_resources = 64\n"));
    let order = connect(&agent).resource("order").unwrap();
    let mut held = Vec::new();
    let mut apart = 0;
    for number in 0..300 {
        let permits = take(&order, &format!("origin-{number}"), 5);
        assert!(permits.len() <= 2, "{number}: {}", permits.len());
        apart += usize::from(permits.len() == 2);
        held.extend(permits);
    }
    // Half of the slots are for them; all that came after share what one of them is allowed.
    assert!((20..=32).contains(&apart), "{apart}");
    assert_eq!(held.len(), apart * 2);
}

#[test]
fn origins_that_rest_give_their_nodes_to_new_ones() {
    let few = "[pages]\nmax_resources = 16\nidle_time = \"1s\"\n";
    let agent = Agent::start(RULES, &format!("{CALM}{few}"));
    let order = connect(&agent).resource("order").unwrap();
    // The first that finds no node fills what all such origins share.
    let mut names = (0..).map(|number| format!("origin-{number}"));
    let mut next = || names.next().unwrap();
    let mut apart = 0;
    let shared = loop {
        let origin = next();
        let permits = take(&order, &origin, 2);
        if apart >= 4 && take(&order, &next(), 1).is_empty() {
            break permits;
        }
        apart += 1;
        assert!(apart < 64, "there is room for fewer");
    };
    assert_eq!(shared.len(), 2);
    let is_admitted = |origin: &str| {
        let body = format!(r#"{{"resource":"order","origin":"{origin}"}}"#);
        agent.ask_http("POST", "/v1/enter", &body).status == 200
    };
    assert!(!is_admitted(&next()), "there is no node for it");
    until::holds("a node for a new origin", 3 * SOON, || is_admitted(&next()));
    assert_eq!(take(&order, &next(), 5).len(), 2);
}

#[test]
fn an_agent_that_stands_still_leaves_new_origins_to_the_limit_of_all() {
    let agent = Agent::start(RULES, CALM);
    let order = connect(&agent).resource("order").unwrap();
    let shop = take(&order, "shop", 2);
    assert_eq!(shop.len(), 2);
    agent.stop();
    assert_eq!(take(&order, "till", 5).len(), 0);
    drop(shop);
    assert_eq!(take(&order, "till", 5).len(), 2);
    agent.go_on();
}

#[test]
fn a_refusal_can_be_told_by_the_id_of_its_rule() {
    let agent = Agent::start(RULES, CALM);
    let client = connect(&agent);
    let order = client.resource("order").unwrap();
    let _held = take(&order, "shop", 2);
    let refused = order.ask().origin("shop").enter().unwrap_err();
    let id = client.rule_id(refused.rule.unwrap());
    assert_eq!(id.as_deref(), Some("each-origin"));
    assert_eq!(client.rule_id(1_000_000).as_deref(), Some(""));
}
