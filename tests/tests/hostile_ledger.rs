//! A service that writes anything into its tenant's ledger: the agent goes on, and so does everybody else.

#![cfg(test)]

use std::fs;

use serde_json::{Value, json};
use tidegate_tests::actor::Actor;
use tidegate_tests::agent::{Agent, CALM, HttpReply};
use tidegate_tests::until::{self, SOON};
use tidegate_tests::user::{self, act_as};
use tidegate_tests::vandal::Scrawl;

/// A resource for each way through the gate.
const EVERY_KIND: &str = include_str!("../fuzz/src/every_kind.toml");
/// One that the tenant that is left alone counts on.
const ORDER: &str = "[[flow]]\nresource = \"order\"\ngrade = \"concurrency\"\ncount = 3\n";

const BLUE: u32 = user::TWO[0];

/// Small pages, so that each of their words is written often. A seat for the agent and three for services.
const CONFIG: &str = "
[pages]
max_resources = 512
max_seats = 4
lanes = 2
[socket]
mode = \"0666\"
[[tenant]]
name = \"blue\"
uid = 65533
";

/// How long the ledger is written over with each pattern, ms.
const SCRAWL_MS: u32 = 300;
/// What the agent may need more in memory of its own: nothing that is read in a ledger says how much it keeps.
const GROWTH_KIB: u64 = 32 * 1024;

/// Names of the resources, in the order of the rules.
fn resources() -> Vec<String> {
    let names = EVERY_KIND
        .lines()
        .filter_map(|line| line.strip_prefix("resource = \""));
    let mut names: Vec<String> = names
        .map(|name| name.trim_end_matches('"').to_owned())
        .collect();
    names.dedup();
    // What matches the pattern, and what nothing is said of.
    names.extend(["pattern-a".to_owned(), "anything".to_owned()]);
    names
}

/// Memory of its own, and not of the pages, KiB.
fn own_memory_kib(agent: &Agent) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid()));
    let status = status.expect("the agent runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("the kernel says how much it is")
}

/// A tenant's services, and the one of the other tenant.
struct Scene {
    agent: Agent,
    vandal: Actor,
    /// On the same ledger.
    neighbour: Actor,
    /// Without a seat: it asks over the socket.
    seatless: Actor,
    /// On a ledger that nobody writes over.
    other: Actor,
}

impl Scene {
    fn new() -> Self {
        let agent = Agent::start_logging(&rules(1), &format!("{CALM}{CONFIG}"));
        agent.open_directory();
        let start = || Actor::start_as(BLUE, &agent.runtime_dir());
        let mut vandal = start();
        let seized = vandal.ask("seize");
        assert!(seized.starts_with("seized "), "{seized}");
        let [mut neighbour, mut seatless] = [(); 2].map(|()| start());
        assert_eq!(neighbour.ask("door"), "shm");
        assert_eq!(seatless.ask("door"), "socket");
        let other = Actor::start(&agent.runtime_dir());
        Self {
            agent,
            vandal,
            neighbour,
            seatless,
            other,
        }
    }

    fn http(&self, method: &str, path: &str, body: &str) -> HttpReply {
        let agent = &self.agent;
        act_as(BLUE, || agent.ask_http(method, path, body))
    }

    /// Asks for a resource over HTTP; whatever the verdict, there is one.
    fn ask_over_http(&self, resource: &str) {
        let question = json!({
            "resource": resource, "origin": "shop", "context": "web", "args": ["vip", 7], "prioritized": true,
        });
        let answer = self.http("POST", "/v1/enter", &question.to_string());
        let told: Value = serde_json::from_str(&answer.body).expect("the answer is JSON");
        match answer.status {
            200 => {
                let exit = json!({"permit": told["permit"], "outcome": "error"});
                let ended = self.http("POST", "/v1/exit", &exit.to_string());
                assert_eq!(ended.status, 200, "{resource}: {}", ended.body);
            }
            429 => assert!(told.get("rule").is_some(), "{resource}: {told}"),
            other => panic!("{resource}: {other} {told}"),
        }
    }

    /// Everybody asks for everything while the ledger is written over.
    fn survive(&mut self, scrawl: Scrawl, turn: usize) {
        self.vandal
            .say(&format!("scrawl {} {SCRAWL_MS}", scrawl.name()));
        for name in resources() {
            for actor in [&mut self.neighbour, &mut self.seatless] {
                actor.say(&format!("try {name} 20"));
            }
            self.ask_over_http(&name);
            for actor in [&self.neighbour, &self.seatless] {
                let heard = actor.hear();
                assert!(
                    heard.starts_with("passed "),
                    "{}, {name}: {heard}",
                    scrawl.name()
                );
            }
            let explained = self.http("GET", &format!("/v1/explain?resource={name}"), "");
            assert!(
                [200, 404].contains(&explained.status),
                "{name}: {explained:?}"
            );
        }
        for path in ["/v1/status", "/metrics", "/v1/resources", "/v1/rules"] {
            assert_eq!(self.http("GET", path, "").status, 200, "{path}");
            assert_eq!(self.agent.ask_http("GET", path, "").status, 200, "{path}");
        }
        // A new set of rules meanwhile: room in the ledger is zeroed, kept and brought over.
        self.agent.write_rules(&rules(turn));
        self.check_the_other();
        let heard = self.vandal.hear();
        let rounds = heard
            .strip_prefix("scrawled ")
            .and_then(|rounds| rounds.parse().ok());
        assert!(rounds > Some(0_u32), "{}: {heard}", scrawl.name());
    }

    /// On the other ledger each verdict is right.
    fn check_the_other(&mut self) {
        assert_eq!(self.other.ask("take order 5"), "taken 3 refused 2");
        assert_eq!(self.other.ask("give 3"), "held 0");
        assert_eq!(self.other.ask("open"), "open 0");
    }
}

/// The rules of a turn: all counts change from one to the next.
fn rules(turn: usize) -> String {
    format!(
        "{ORDER}{}",
        EVERY_KIND.replace("count = ", &format!("count = {turn}"))
    )
}

#[test]
fn no_bits_in_a_ledger_stop_the_agent_or_anybody_on_another_ledger() {
    if !user::are_at_hand() {
        return;
    }
    let mut scene = Scene::new();
    let before_kib = own_memory_kib(&scene.agent);
    for (turn, scrawl) in (2..).zip(Scrawl::ALL) {
        scene.survive(scrawl, turn);
    }
    let grown_kib = own_memory_kib(&scene.agent).saturating_sub(before_kib);
    assert!(grown_kib <= GROWTH_KIB, "{grown_kib} KiB more in use");
    // The vandal goes, and its seats are for those who come now.
    let agent = &scene.agent;
    scene.vandal.kill();
    until::holds("a seat for a new service", SOON, || {
        let mut late = Actor::start_as(BLUE, &agent.runtime_dir());
        let door = late.ask("door");
        assert!(["shm", "socket"].contains(&door.as_str()), "{door}");
        assert!(late.ask("try plain 20").starts_with("passed "));
        door == "shm"
    });
    for name in resources() {
        scene.ask_over_http(&name);
        let heard = scene.neighbour.ask(&format!("try {name} 20"));
        assert!(heard.starts_with("passed "), "{name}: {heard}");
    }
    scene.check_the_other();
    let log = scene.agent.log();
    assert!(!log.contains("panicked"), "{log}");
}
