//! A law that observes judges, tells what it would have refused at each door, and refuses nothing.

#![cfg(test)]

use serde_json::Value;
use tidegate_client::{Client, Transport};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, ONE_SEAT};
use tidegate_tests::until::{self, SOON};

/// A mark on the CPU that no machine is under: the host refuses all inbound work.
fn config(kind: &str, mode: &str) -> String {
    format!(
        "[cpu]\nenter = 0.0002\nleave = 0.0001\naction = \"reject\"\nsustained = \"0s\"\n\
         [law]\nkind = \"{kind}\"\nmode = \"{mode}\"\n{ONE_SEAT}"
    )
}

fn host(agent: &Agent) -> Value {
    agent.get("/v1/status")["scopes"][0].clone()
}

/// Asks once at each door: pages, gate socket, HTTP with a permit and without.
struct Doors {
    actor: Actor,
    socket: Client,
}

impl Doors {
    fn of(agent: &Agent) -> Self {
        let actor = Actor::start(&agent.runtime_dir());
        let socket = Client::builder().runtime_dir(agent.runtime_dir());
        let socket = socket.connect().expect("the agent is there");
        assert_eq!(socket.status().door, Some(Transport::Socket));
        Self { actor, socket }
    }

    fn ask(&mut self, agent: &Agent) -> [bool; 4] {
        let seated = self.actor.ask("try a 1") == "passed 1 refused 0 none";
        let resource = self.socket.resource("a").expect("it is a name");
        let socket = resource.enter().is_ok();
        let entered = agent.ask_http("POST", "/v1/enter", r#"{"resource":"a"}"#);
        let once = agent.ask_http("GET", "/v1/admit?resource=a", "");
        [
            seated,
            socket,
            entered.status == 200,
            (200..300).contains(&once.status),
        ]
    }
}

#[test]
fn field_o7_a_law_that_observes_tells_at_each_door_and_a_reload_has_it_refuse() {
    let agent = Agent::start_logging("", &config("adaptive", "observe"));
    let mut doors = Doors::of(&agent);
    until::holds("a scope past its mark", SOON, || {
        host(&agent)["state"] == "reject"
    });
    assert_eq!(doors.ask(&agent), [true; 4]);
    until::holds("a count of all four", SOON, || {
        host(&agent)["observed_total"].as_u64() >= Some(4)
    });
    let told = host(&agent);
    assert_eq!(
        (&told["mode"], &told["refuses"]),
        (&"observe".into(), &false.into())
    );
    assert_eq!(told["shed_total"], 0);
    let why = told["why"].as_str().expect("it says why");
    assert!(why.contains("it only observes"), "{why}");
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    assert!(metrics.contains("tidegate_scope_observed_total{scope=\"host\"}"));
    let explained = agent.get("/v1/explain?resource=a").to_string();
    assert!(explained.contains("it only observes"), "{explained}");
    until::holds("a line in the log", SOON, || {
        agent.log().contains("it only observes and refuses nobody")
    });
    agent.write_config(&config("adaptive", "enforce"));
    agent.reload();
    until::holds("refusals at each door", SOON, || {
        doors.ask(&agent) == [false; 4]
    });
    agent.write_config(&config("adaptive", "observe"));
    agent.reload();
    until::holds("none again", SOON, || doors.ask(&agent) == [true; 4]);
}

#[test]
fn field_o7_sentinels_check_observes_too() {
    let agent = Agent::start("", &config("sentinel", "enforce"));
    let mut doors = Doors::of(&agent);
    until::holds("refusals at each door", SOON, || {
        doors.ask(&agent) == [false; 4]
    });
    agent.write_config(&config("sentinel", "observe"));
    agent.reload();
    until::holds("none", SOON, || doors.ask(&agent) == [true; 4]);
}
