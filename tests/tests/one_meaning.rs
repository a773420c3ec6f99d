//! What a caller holds over a socket counts in its scope, as what is held through shared memory does.

#![cfg(test)]

use std::process::Command;

use serde_json::Value;
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::until::{self, SOON};

/// Requests of each door, one at a time.
const REQUESTS: u64 = 60;

/// Settings of a scope as they are shipped, beside a host that limits nothing; its CPU mark is passed soon.
fn shipped(group: &ConfinedProcess) -> String {
    format!(
        "{CALM}
[[scope]]
name = \"inside\"
cgroup = \"{}\"
[scope.cpu]
enabled = true
sustained = \"300ms\"
[scope.law.entry]
least_requests = 32.0
[scope.law.tight]
slack_requests = 8.0
[scope.law.cold]
entry_per_cpu = 32.0
tight_per_cpu = 16.0
",
        group.cgroup
    )
}

/// A scope that limits nothing.
fn calm(group: &ConfinedProcess) -> String {
    let cgroup = &group.cgroup;
    format!("{CALM}[[scope]]\nname = \"inside\"\ncgroup = \"{cgroup}\"\n")
}

fn scope(agent: &Agent, cgroup: &str) -> Option<Value> {
    let status = agent.get("/v1/status");
    let scopes = status["scopes"].as_array()?;
    let found = scopes.iter().find(|scope| scope["cgroup"] == cgroup);
    found.cloned()
}

fn count(agent: &Agent, cgroup: &str, what: &str) -> u64 {
    let scope = scope(agent, cgroup);
    scope
        .and_then(|scope| scope[what].as_u64())
        .unwrap_or_default()
}

fn inflight(agent: &Agent, cgroup: &str) -> u64 {
    count(agent, cgroup, "inflight")
}

fn host_inflight(agent: &Agent) -> Option<u64> {
    let status = agent.get("/v1/status");
    status.pointer("/scopes/0/inflight").and_then(Value::as_u64)
}

/// Requests that passed, of an answer of the actor.
fn passed(answer: &str) -> u64 {
    let passed = answer.split(' ').nth(1);
    passed
        .and_then(|passed| passed.parse().ok())
        .expect("passed N")
}

#[test]
fn alone_field_o3_in_a_group_in_overload_each_door_admits_as_many_one_at_a_time() {
    let Some(group) = ConfinedProcess::busy("o3-overload") else {
        return;
    };
    group.limit(50_000);
    let agent = Agent::start("", &shipped(&group));
    let mut inside = Actor::start_in(&group, &agent.runtime_dir());
    let mut outside = Actor::start(&agent.runtime_dir());
    // Until the first tick that knows the group, requests count in the host.
    for door in ["gate", "http"] {
        until::holds("the caller's group is known", SOON, || {
            let before = count(&agent, &group.cgroup, "passed_total");
            inside.ask(&format!("ask {door} early 1"));
            count(&agent, &group.cgroup, "passed_total") > before
        });
    }
    until::holds("overload of the group", SOON, || {
        scope(&agent, &group.cgroup).is_some_and(|scope| scope["state"] == "overload")
    });
    let mut mapped = 0;
    for _request in 0..REQUESTS {
        mapped += passed(&inside.ask("try order 1"));
    }
    let of_doors = ["gate", "http"].map(|door| {
        let within = inside.ask(&format!("ask {door} order {REQUESTS}"));
        let without = outside.ask(&format!("ask {door} order {REQUESTS}"));
        assert_eq!(passed(&without), REQUESTS, "{door} outside: {without}");
        (door, within)
    });
    for (door, within) in of_doors {
        let least = mapped - mapped / 20;
        assert!(passed(&within) >= least, "{door}: {within}, not {mapped}");
    }
    assert!(mapped >= REQUESTS / 2, "{mapped} of {REQUESTS}");
}

#[test]
fn field_o3_permits_over_both_sockets_are_in_flight_in_their_holders_scope_and_end_with_it() {
    let Some(group) = ConfinedProcess::start("o3-held", Command::new("sleep").arg("600")) else {
        return;
    };
    let rules = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 12\n";
    let agent = Agent::start(rules, &calm(&group));
    let mut inside = Actor::start_in(&group, &agent.runtime_dir());
    let mut outside = Actor::start(&agent.runtime_dir());
    until::holds("the group is known", SOON, || {
        inside.ask("ask gate order 1");
        inside.ask("ask http order 1");
        count(&agent, &group.cgroup, "passed_total") >= 2
    });
    assert_eq!(inside.ask("take order 1"), "taken 1 refused 0");
    assert_eq!(inside.ask("hold gate order 3"), "taken 3 refused 0");
    assert_eq!(inside.ask("hold http order 2"), "taken 2 refused 0");
    assert_eq!(outside.ask("hold gate order 4"), "taken 4 refused 0");
    until::holds("what is held counts in each scope", SOON, || {
        (inflight(&agent, &group.cgroup), host_inflight(&agent)) == (6, Some(10))
    });
    // The rule counts all of them, whatever door they came by.
    assert_eq!(inside.ask("hold http order 5"), "taken 2 refused 3");
    assert_eq!(outside.ask("hold gate order 1"), "taken 0 refused 1");
    inside.kill();
    until::holds("a death gives back what its connections held", SOON, || {
        // Permits over HTTP end by the clock.
        (inflight(&agent, &group.cgroup), host_inflight(&agent)) == (4, Some(8))
    });
    assert_eq!(outside.ask("hold gate order 9"), "taken 4 refused 5");
}

#[test]
fn field_o3_a_holder_that_moves_counts_in_its_new_group_and_what_it_held_over_a_socket_stays() {
    let Some(before) = ConfinedProcess::start("o3-before", Command::new("sleep").arg("600")) else {
        return;
    };
    let Some(after) = ConfinedProcess::start("o3-after", Command::new("sleep").arg("600")) else {
        return;
    };
    let agent = Agent::start("", &calm(&before));
    let mut actor = Actor::start_in(&before, &agent.runtime_dir());
    until::holds("the group is known", SOON, || {
        actor.ask("ask gate order 1");
        count(&agent, &before.cgroup, "passed_total") >= 1
    });
    assert_eq!(actor.ask("take order 5"), "taken 5 refused 0");
    assert_eq!(actor.ask("hold gate order 1"), "taken 1 refused 0");
    until::holds("six in the first group", SOON, || {
        inflight(&agent, &before.cgroup) == 6
    });
    after.take_over(&before);
    until::holds("new requests count in the new group", SOON, || {
        actor.ask("ask gate order 1");
        count(&agent, &after.cgroup, "passed_total") >= 1
    });
    // What the process holds through shared memory is in its own seat, which goes with it.
    until::holds("the seat has moved", SOON, || {
        (
            inflight(&agent, &before.cgroup),
            inflight(&agent, &after.cgroup),
        ) == (1, 5)
    });
}
