//! Rules that change under a service on the pages: what each kind remembers, and that bad ones change nothing.

#![cfg(test)]

use std::fs;

use tidegate_client::argument::{ArgumentKind, text_hash};
use tidegate_client::{Arg, Client, Permit, Transport};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::until::{self, SOON};

/// Limits of every kind that remembers. A minute is longer than the test.
fn rules(version: u32, count: u32, threshold: u32) -> String {
    let rule = |kind: &str, resource: &str, more: &str| {
        format!("[[{kind}]]\nid = \"{resource}\"\nresource = \"{resource}\"\n{more}\n")
    };
    let minute = format!("count = {count}\nwindow = \"60s\"");
    let places = format!("grade = \"concurrency\"\ncount = {count}");
    let paced = "count = 0.01\nbehavior = \"pace\"\nmax_queueing_time = \"1ms\"";
    let items = "items = [{ value = \"vip\", count = 1 }]";
    let breaker = "grade = \"error_count\"\nmin_requests = 1\nrecovery_timeout = \"1h\"";
    [
        rule("flow", &format!("version-{version}"), "count = 0"),
        rule("flow", "window", &minute),
        rule("flow", "strict", &format!("{minute}\nstrict = true")),
        rule(
            "flow",
            "origin",
            &format!("{minute}\nlimit_origin = \"shop\""),
        ),
        rule("flow", "paced", paced),
        rule("flow", "places", &places),
        rule("param", "value", &format!("index = 0\n{minute}\n{items}")),
        rule(
            "degrade",
            "broken",
            &format!("{breaker}\nthreshold = {threshold}"),
        ),
    ]
    .concat()
}

/// The resources, but for the breaker's.
const LIMITED: [&str; 7] = [
    "window", "strict", "origin", "paced", "places", "value", "vip",
];

struct Service {
    client: Client,
    held: Vec<Permit>,
}

impl Service {
    fn asks(&mut self, name: &str) -> bool {
        let (resource, value) = if name == "vip" {
            ("value", "vip")
        } else {
            (name, "other")
        };
        let resource = self.client.resource(resource).expect("it is a name");
        let args = [Arg::One(text_hash(ArgumentKind::Text, value))];
        let permit = resource.ask().origin("shop").args(&args).enter();
        let passes = permit.is_ok();
        self.held.extend(permit);
        passes
    }

    /// How many more pass of each.
    fn passes(&mut self) -> Vec<(&'static str, usize)> {
        let each = LIMITED.into_iter();
        each.map(|name| (name, (0..9).filter(|_call| self.asks(name)).count()))
            .collect()
    }

    fn breaks(&mut self) -> bool {
        let resource = self.client.resource("broken").expect("it is a name");
        resource.enter().map(Permit::error).is_ok()
    }

    /// Whether the rules of that version are in force.
    fn wait_for(&mut self, version: u32) {
        let name = format!("version-{version}");
        let resource = self.client.resource(&name).expect("it is a name");
        until::holds("the new rules", SOON, || resource.enter().is_err());
    }
}

fn all(passes: [usize; 7]) -> Vec<(&'static str, usize)> {
    LIMITED.into_iter().zip(passes).collect()
}

#[test]
fn every_kind_of_rule_keeps_what_it_knows_and_a_file_with_a_fault_changes_nothing() {
    let agent = Agent::start_logging(&rules(1, 3, 0), CALM);
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("the agent serves");
    assert_eq!(client.status().door, Some(Transport::Shm));
    let mut service = Service {
        client,
        held: Vec::new(),
    };
    assert_eq!(service.passes(), all([3, 3, 3, 1, 3, 3, 1]));
    assert!(
        service.breaks() && !service.breaks(),
        "it opens and stays open"
    );
    // The same rules, all of them at another place.
    agent.write_rules(&rules(2, 3, 0));
    service.wait_for(2);
    assert_eq!(service.passes(), all([0; 7]));
    assert!(!service.breaks());
    // Another count: one more passes, and tokens come back with the next refill alone.
    agent.write_rules(&rules(3, 4, 0));
    service.wait_for(3);
    assert_eq!(service.passes(), all([1, 1, 1, 0, 1, 0, 0]));
    assert!(!service.breaks());
    // Other marks: a breaker that judges anew.
    agent.write_rules(&rules(4, 4, 1));
    service.wait_for(4);
    assert!(service.breaks());
    assert_eq!(service.passes(), all([0; 7]));
    // One fault, and none of the new rules is in force.
    let bad = rules(5, 9, 1).replace("count = 0.01", "count = -1");
    let line = 1 + bad.lines().take_while(|line| *line != "count = -1").count();
    agent.write_rules(&bad);
    let fault = format!("test.toml:{line}:9: flow[4].count = -1");
    until::holds("the fault is told", SOON, || agent.log().contains(&fault));
    assert_eq!(service.passes(), all([0; 7]));
    assert!(service.asks("version-5"), "no rule of the file is in force");
}

#[test]
fn a_directory_of_rules_that_is_gone_lifts_none_of_them_and_an_empty_one_does() {
    let agent = Agent::start_logging(&rules(1, 3, 0), CALM);
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let mut service = Service {
        client: client.expect("the agent serves"),
        held: Vec::new(),
    };
    assert!(!service.asks("version-1"));
    let gone = agent.rules_dir().with_extension("away");
    fs::rename(agent.rules_dir(), &gone).expect("the directory is ours");
    let fault = format!(
        "{}: no such directory; allowed: a directory of rule files; an empty one lifts all rules",
        agent.rules_dir().display()
    );
    let told = || agent.log().matches(&fault).count();
    until::holds("the fault is told", SOON, || told() > 0);
    let before = told();
    agent.reload();
    until::holds("it is told again", SOON, || told() > before);
    assert!(agent.log().contains("the rules before stay in force"));
    assert!(!service.asks("version-1"));
    fs::create_dir(agent.rules_dir()).expect("the directory is ours");
    until::holds("no rule is in force", SOON, || service.asks("version-1"));
    fs::rename(gone.join("test.toml"), agent.rules_dir().join("test.toml")).expect("it is ours");
    service.wait_for(1);
}
