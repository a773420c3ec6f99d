//! `tidegate events` and `GET /v1/events`: what has happened, and how often.

#![cfg(test)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tidegate_client::{Client, Permit, Transport};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::until::{self, SOON};

fn rule(count: u32) -> String {
    format!("[[flow]]\nid = \"orders\"\nresource = \"order\"\ncount = {count}\n")
}

fn command(agent: &Agent, arguments: &[&str]) -> Command {
    let mut command = Program::Tidegate.command();
    command.arg("events").args(arguments);
    command.arg("--runtime-dir").arg(agent.runtime_dir());
    command
}

/// What the command prints, line by line.
fn told(agent: &Agent, arguments: &[&str]) -> Vec<String> {
    let output = command(agent, arguments).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines().map(str::to_owned).collect()
}

/// The last event of a name, once there is one whose text has a part.
fn event(agent: &Agent, name: &str, part: &str) -> Value {
    let look = || {
        let report = agent.get("/v1/events");
        let events = report["events"].as_array()?;
        let fits = |event: &&Value| {
            let text = event["text"].as_str().unwrap_or_default();
            event["event"] == name && text.contains(part)
        };
        events.iter().rev().find(fits).cloned()
    };
    until::found(&format!("{name}: {part}"), SOON, look).0
}

/// A service on the pages, with a request in flight.
fn mapped(agent: &Agent) -> (Client, Permit) {
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("the agent serves");
    let order = client.resource("order").expect("it is a name");
    until::holds("the pages are mapped", SOON, || {
        client.status().door == Some(Transport::Shm)
    });
    let permit = order.enter().expect("it is admitted");
    (client, permit)
}

#[test]
fn what_happened_is_told_with_who_and_how_often_after_it_too() {
    let agent = Agent::start(&rule(100), CALM);
    event(&agent, "started", "serves");
    let verdict = event(&agent, "verdict", "");
    let status = agent.get("/v1/status");
    let words = [&verdict["text"], &status["verdict"]["text"]].map(|text| {
        let (word, _sentence) = text.as_str()?.split_once(": ")?;
        ["calm", "watch", "cold", "busy", "overload"]
            .contains(&word)
            .then_some(())
    });
    assert_eq!(words, [Some(()); 2], "{verdict} {}", status["verdict"]);
    agent.write_rules(&rule(120));
    let change = event(
        &agent,
        "rules_changed",
        "changed flow orders (count 100 -> 120)",
    );
    assert_eq!(change["fields"]["tenant"], "default");
    agent.write_rules("[[flow]]\n");
    event(&agent, "reload_refused", "");
    event(&agent, "config_fault", "test.toml");
    let begun = agent.get("/v1/events")["last"].clone();
    let (client, _permit) = mapped(&agent);
    event(&agent, "client_came", "maps");
    drop(client);
    let gone = event(&agent, "client_gone", "given back");
    assert!(gone["number"].as_u64() > begun.as_u64(), "{gone}");
    let later = agent.get(&format!("/v1/events?after={}", gone["number"]));
    assert!(later["last"].as_u64() >= gone["number"].as_u64(), "{later}");
    let none = agent.get(&format!("/v1/events?after={}", later["last"]));
    assert!(none["events"].is_array(), "{none}");
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    let counted = "tidegate_events_total{event=\"rules_changed\"} 1\n";
    assert!(metrics.contains(counted), "{metrics}");

    let lines = told(&agent, &[]);
    let is_change = |line: &&String| line.contains("  info   rules_changed: changed flow orders");
    assert!(lines.iter().any(|line| is_change(&line)), "{lines:#?}");
    let lines = told(&agent, &["--json", "--since", "1h"]);
    let first: Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert!(first["at_unix_ms"].is_u64(), "{first}");
    assert!(told(&agent, &["--json", "--since", "2100-01-01 00:00:00"]).is_empty());
    let wrong = agent.ask_http("GET", "/v1/events?after=x", "");
    assert_eq!(wrong.status, 400, "{}", wrong.body);
}

/// A command that follows, and its lines.
fn follow(agent: &Agent) -> (Child, Receiver<String>) {
    let mut command = command(agent, &["--follow"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let (told, seen) = channel();
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            // Nobody wants more lines: the end of this thread closes the pipe.
            if told.send(line).is_err() {
                return;
            }
        }
    });
    (child, seen)
}

fn wait_for(lines: &Receiver<String>, part: &str) {
    loop {
        let line = lines.recv_timeout(SOON);
        let line = line.unwrap_or_else(|error| panic!("{part}: {error}"));
        if line.contains(part) {
            return;
        }
    }
}

#[test]
fn follow_goes_on_over_a_restart_and_ends_with_its_reader() {
    let mut agent = Agent::start(&rule(100), CALM);
    let (mut child, lines) = follow(&agent);
    wait_for(&lines, "started: serves");
    agent.write_rules(&rule(120));
    wait_for(&lines, "count 100 -> 120");
    agent.kill();
    agent.start_again();
    wait_for(&lines, "started: serves");
    drop(lines);
    let mut count = 120_u32;
    until::holds("the end of the command", SOON, || {
        // The first line into the closed pipe, or a later one, is the last.
        count = count.saturating_add(1);
        agent.write_rules(&rule(count));
        child.try_wait().expect("it is ours").is_some()
    });
    assert!(child.wait().expect("it is ours").success());
}
