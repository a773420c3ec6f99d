//! Resources that rules reach by a pattern or `*` come and go, and none is ever unprotected.

#![cfg(test)]

use std::time::Duration;

use serde_json::json;
use tidegate_abi::decision::RefusalKind;
use tidegate_client::{Client, Transport};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until;

const RULES: &str = r#"
[[flow]]
id = "closed"
resource = "closed/.*"
regex = true
count = 0
[[degrade]]
id = "any"
resource = "*"
grade = "error_count"
threshold = 0
min_requests = 1
recovery_timeout = "1h"
"#;

/// Few slots, and a short time until an idle one goes; then it rests for 10 s.
const FEW: &str = "
[pages]
max_resources = 16
idle_time = \"1s\"
";

/// Idle, rest, and a slow machine.
const GIVEN_BACK: Duration = Duration::from_mins(1);

/// Slots for all that is named here, and not for every name.
const SOME: &str = "
[pages]
max_resources = 32
";

fn connect(agent: &Agent) -> Client {
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("the agent serves");
    assert_eq!(client.status().door, Some(Transport::Shm));
    client
}

/// Asks for names until there is no slot left for one more.
fn fill(client: &Client) {
    for number in 0..40 {
        let resource = client.resource(&format!("name-{number}"));
        resource
            .expect("it is a name")
            .enter()
            .expect("it works")
            .ok();
    }
}

/// What a service is told that asks for a name and fails with it.
fn fails(client: &Client, name: &str) -> Result<(), RefusalKind> {
    let resource = client.resource(name).expect("it is a name");
    let permit = resource.enter().map_err(|refused| refused.kind)?;
    permit.error();
    Ok(())
}

/// The resource that counts for a name.
fn counted_as(agent: &Agent, name: &str) -> String {
    let told = agent.get(&format!("/v1/explain?resource={name}"));
    let counted = told.get("counted_as").and_then(serde_json::Value::as_str);
    counted.unwrap_or_default().to_owned()
}

/// The state of the breaker that guards a name.
fn breaker(agent: &Agent, name: &str) -> serde_json::Value {
    let told = agent.get(&format!("/v1/explain?resource={name}"));
    let state = told.pointer("/rules/0/now/breaker");
    state.cloned().unwrap_or_default()
}

#[test]
fn names_beyond_the_slots_are_protected_and_idle_ones_make_room_but_for_open_breakers() {
    let agent = Agent::start(RULES, &format!("{CALM}{FEW}"));
    let client = connect(&agent);
    assert_eq!(fails(&client, "broken"), Ok(()));
    let quiet = client.resource("quiet").expect("it is a name");
    quiet.enter().expect("its breaker is closed").ok();
    fill(&client);
    // No slot is left. The pattern's rule holds what matches it all the same.
    assert_eq!(fails(&client, "closed/late"), Err(RefusalKind::Flow));
    assert_eq!(counted_as(&agent, "closed/late"), "__other__:closed/.*");
    let late = client.resource("late").expect("it is a name");
    late.enter().expect("no pattern is for it").ok();
    assert_eq!(counted_as(&agent, "late"), "__other__");
    // A new name takes a slot that is given back. Slots come back one by one, and a name that shared one may ask again
    // meanwhile and be first; who comes too late shares a slot until the next set of rules. So each try is a new name.
    let mut tries = 0..;
    let mut new = String::new();
    until::holds("a new name gets a slot", GIVEN_BACK, || {
        new = format!("new-{:?}", tries.next());
        client.resource(&new).expect("it is a name");
        counted_as(&agent, &new) == new
    });
    // The slot's last holder is gone with its state, and the breaker for all guards the new one.
    assert_eq!(breaker(&agent, &new), json!("closed"));
    until::holds("its breaker opens", until::SOON, || {
        fails(&client, &new) == Err(RefusalKind::Degrade) && breaker(&agent, &new) == json!("open")
    });
    // A service that knows a resource whose slot went is guarded as well.
    until::holds("the slot of a quiet resource goes", GIVEN_BACK, || {
        counted_as(&agent, "quiet") != "quiet"
    });
    until::holds("its breaker opens again", until::SOON, || {
        fails(&client, "quiet") == Err(RefusalKind::Degrade)
            && counted_as(&agent, "quiet") != "__other__"
            && breaker(&agent, "quiet") == json!("open")
    });
    // An open breaker stays, however long nobody asks.
    assert_eq!(counted_as(&agent, "broken"), "broken");
    assert_eq!(fails(&client, "broken"), Err(RefusalKind::Degrade));
    assert_eq!(breaker(&agent, "broken"), json!("open"));
}

#[test]
fn a_service_whose_names_share_a_slot_is_held_to_rules_that_come_for_them() {
    let agent = Agent::start(RULES, &format!("{CALM}{SOME}"));
    let client = connect(&agent);
    fill(&client);
    let late = ["late", "new/late"].map(|name| client.resource(name).expect("it is a name"));
    for resource in &late {
        resource.enter().expect("no rule is for it").ok();
        assert_eq!(counted_as(&agent, resource.name()), "__other__");
    }
    let new = "[[flow]]\nid = \"named\"\nresource = \"late\"\ncount = 0\n\
               [[flow]]\nid = \"new\"\nresource = \"new/.*\"\nregex = true\ncount = 0\n";
    agent.write_rules(&format!("{RULES}{new}"));
    for resource in &late {
        until::holds(resource.name(), until::SOON, || resource.enter().is_err());
    }
    // And let go where the rules go again.
    agent.write_rules(RULES);
    for resource in &late {
        until::holds(resource.name(), until::SOON, || resource.enter().is_ok());
    }
}
