//! What the law does to real services of a real agent: they share a scope's limit by weight, and shedding that
//! does not help is told and ended.

#![cfg(test)]

use std::process::Command;

use serde_json::Value;
use tidegate_agent::procfs::{GroupFinder, Roots};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::limit::{MARKS_OFF, forty};
use tidegate_tests::until::{self, SOON};

/// Ticks in which what the agent remembers of a burst has become small beside five requests. Each is a quarter of a
/// whole one while a scope with traffic is cold.
const LATER: u64 = 40;

const WEIGHTS: &str = "
[[service]]
name = \"greedy\"
weight = 3.0
[[service]]
name = \"modest\"
weight = 1.0
";

/// Forty requests for all processes of this test's group, or of the host where that group cannot be seen.
fn shared_by_weight() -> String {
    let finder = GroupFinder::new(Roots::default());
    match finder.of_process(std::process::id()) {
        Some(group) => {
            let forty = forty("scope.law");
            let group = group.display();
            format!(
                "{CALM}{WEIGHTS}[[scope]]\nname = \"here\"\ncgroup = \"/{group}\"\n[scope.cpu]\nenabled = false\n{forty}"
            )
        }
        None => format!("{MARKS_OFF}{WEIGHTS}{}", forty("law")),
    }
}

fn ticks(agent: &Agent) -> u64 {
    let status = agent.get("/v1/status");
    let ticks = status.pointer("/agent/ticks").and_then(Value::as_u64);
    ticks.expect("status tells the ticks")
}

/// Lets ticks go by while a service that has its part asks for more.
fn go_on(agent: &Agent, more: u64, greedy: &mut Actor) {
    let end = ticks(agent) + more;
    until::holds("ticks", SOON, || {
        assert_eq!(greedy.ask("take order 20"), "taken 0 refused 20");
        ticks(agent) >= end
    });
}

#[test]
fn a_service_borrows_what_the_other_leaves_and_is_held_to_its_part_when_that_one_comes() {
    let agent = Agent::start("", &shared_by_weight());
    let mut greedy = Actor::start_named("greedy", &agent.runtime_dir());
    until::holds("limits", SOON, || ticks(&agent) >= 3);
    until::holds("a full scope", SOON, || {
        greedy.ask("take order 20") == "taken 0 refused 20"
    });
    let held = greedy.ask("give 0");
    let held: u32 = held.strip_prefix("held ").unwrap().parse().unwrap();
    assert!(held >= 40, "alone it may hold all: {held}");
    let mut modest = Actor::start_named("modest", &agent.runtime_dir());
    go_on(&agent, LATER, &mut greedy);
    // Nothing is free, and it gets what it needs of its part at once.
    assert_eq!(modest.ask("take order 5"), "taken 5 refused 0");
    // Ticks are quarters while a scope with traffic is cold: as many as two whole ones.
    go_on(&agent, 8, &mut greedy);
    // Three quarters of forty are what is left to the other: it holds them, and gets no more.
    assert_eq!(greedy.ask(&format!("give {}", held - 30)), "held 30");
    assert_eq!(greedy.ask("take order 100"), "taken 0 refused 100");
    assert_eq!(modest.ask("take order 100"), "taken 5 refused 95");
    assert_eq!(greedy.ask("give 10"), "held 20");
    assert_eq!(greedy.ask("take order 100"), "taken 10 refused 90");
}

/// Little is shed for half a second before the law asks whether it helps.
const IMPATIENT: &str = "
[law.entry]
delay = \"1ms\"
least_requests = 20.0
[law.tight]
delay = \"1ms\"
slack_requests = 1.0
grow_ratio = 0.0
reach_factor = 1.0
[law.evidence]
ticks = 1
busy_ratio = 0.05
[law.release]
demand_under_ratio = 0.0
[law.effect]
period = \"500ms\"
rest = \"10m\"
";

#[test]
fn shedding_that_does_not_lower_the_pressure_of_others_is_told_and_ended() {
    let Some(batch) = ConfinedProcess::busy("batch") else {
        return;
    };
    let Some(orders) = ConfinedProcess::start("orders", Command::new("sleep").arg("600")) else {
        return;
    };
    batch.outweigh();
    let declared = format!(
        "{MARKS_OFF}{IMPATIENT}[[scope]]\nname = \"orders\"\ncgroup = \"{}\"\n[scope.cpu]\nenabled = false\n",
        orders.cgroup
    );
    let agent = Agent::start_logging("", &declared);
    let mut holder = Actor::start_in(&orders, &agent.runtime_dir());
    let mut busy = Actor::start_in(&orders, &agent.runtime_dir());
    let scope = |agent: &Agent| {
        let status = agent.get("/v1/status");
        let scopes = status["scopes"].as_array().cloned().unwrap_or_default();
        let found = scopes.into_iter().find(|scope| scope["name"] == "orders");
        found.unwrap_or_default()
    };
    // Work is done, and then nothing more, since another request holds every place.
    busy.say("offer order 1 200 20");
    until::holds("work that is done", SOON, || {
        scope(&agent)["limits"]["allowed_qps"].is_number()
    });
    holder.ask("take order 500");
    until::holds("ineffective shedding", SOON, || {
        holder.ask("take order 5");
        scope(&agent)["course"]["ineffective"] == true
    });
    assert_eq!(scope(&agent)["state"], "overload", "{}", scope(&agent));
    // Nothing is done, so the limit is tight still. Then something is.
    holder.ask("give 500");
    until::holds("the entry limit", SOON, || {
        scope(&agent)["limits"]["inflight"].as_u64() >= Some(20)
    });
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let told = "tidegate_scope_ineffective_total{scope=\"orders\"} 1";
    assert!(metrics.contains(told), "{metrics}");
    until::holds("a line of the log", SOON, || {
        let log = agent.log();
        let mut lines = log.lines();
        lines.any(|line| line.contains("does not lower the pressure") && line.contains("orders"))
    });
}
