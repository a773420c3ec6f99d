//! An agent that starts while its rules are at fault: it protects with the last good ones, and says so everywhere.

#![cfg(test)]

use std::fs;

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::reload_state::{is_metric_good, refused, status};
use tidegate_tests::until::{self, SOON};

const GOOD: &str = "[[flow]]\nresource = \"shut\"\ncount = 0\n";
const OTHER: &str = "[[flow]]\nresource = \"other\"\ncount = 0\n";
const BAD: &str = "[[flow]]\nresource = \"shut\"\ncount = -1\n";

fn is_refused(agent: &Agent, resource: &str) -> bool {
    let body = format!("{{\"resource\":\"{resource}\"}}");
    agent.ask_http("POST", "/v1/enter", &body).status == 429
}

/// Waits until so many sets of rules are kept.
fn wait_until_kept(agent: &Agent, count: usize) {
    let kept = agent.runtime_dir().join("last-good");
    until::holds("the rules are kept", SOON, || {
        let files = fs::read_dir(&kept).into_iter().flatten().flatten();
        let texts = files
            .filter(|file| file.path().extension() == Some("json".as_ref()))
            .filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|text| text.contains("count = 0")).count() == count
    });
}

/// An agent whose good rules are kept, killed.
fn killed(rules: &str) -> Agent {
    let mut agent = Agent::start_logging(rules, CALM);
    wait_until_kept(&agent, 1);
    agent.kill();
    agent
}

fn forget(agent: &Agent) {
    fs::remove_dir_all(agent.runtime_dir().join("last-good")).expect("it is ours");
}

#[test]
fn field_b12_a_fault_in_the_rules_at_the_start_leaves_the_last_good_ones_in_force() {
    let mut agent = killed(GOOD);
    agent.write_rules(BAD);
    agent.start_again();
    assert!(is_refused(&agent, "shut"), "the rules before the restart");
    assert_eq!(refused(&agent)["faults"], 1);
    assert_eq!(
        refused(&agent)["instead"],
        "the last good rules are in force"
    );
    assert!(!is_metric_good(&agent));
    let text = status(&agent);
    let told = text.split(" ! rules refused at the start ").nth(1);
    assert!(
        told.is_some_and(|told| told.contains("test.toml:3:9")),
        "{text}"
    );
    assert!(agent.log().contains("the last good rules are in force"));
    // As soon as the file is right, it counts.
    agent.write_rules(OTHER);
    until::holds("the new rules", SOON, || is_refused(&agent, "other"));
    assert!(!is_refused(&agent, "shut"));
    // They are in force a moment before that is told.
    until::holds("nothing at fault", SOON, || {
        refused(&agent).is_null() && is_metric_good(&agent)
    });
    assert!(!status(&agent).contains("rules refused"));
}

#[test]
fn field_b12_rules_that_are_right_come_before_those_that_were_kept() {
    let mut agent = killed(GOOD);
    agent.write_rules(OTHER);
    agent.start_again();
    assert!(is_refused(&agent, "other") && !is_refused(&agent, "shut"));
    assert!(refused(&agent).is_null());
    // An empty directory is right too.
    agent.kill();
    fs::remove_file(agent.rules_dir().join("test.toml")).expect("it is ours");
    agent.start_again();
    assert!(!is_refused(&agent, "other") && refused(&agent).is_null());
}

#[test]
fn field_b12_a_directory_that_is_gone_at_the_start_lifts_no_rule() {
    let mut agent = killed(GOOD);
    fs::rename(agent.rules_dir(), agent.rules_dir().with_extension("away")).expect("it is ours");
    agent.start_again();
    assert!(is_refused(&agent, "shut"));
    assert_eq!(
        refused(&agent)["instead"],
        "the last good rules are in force"
    );
}

#[test]
fn field_b12_without_good_rules_the_agent_starts_on_none_and_says_so() {
    for damage in ["none kept", "damaged"] {
        let mut agent = killed(GOOD);
        agent.write_rules(BAD);
        forget(&agent);
        if damage == "damaged" {
            agent.write_rules(GOOD);
            agent.start_again();
            wait_until_kept(&agent, 1);
            agent.kill();
            agent.write_rules(BAD);
            let kept = agent.runtime_dir().join("last-good");
            for file in fs::read_dir(kept).expect("it is there") {
                fs::write(file.expect("it is there").path(), "{}").expect("it is ours");
            }
        }
        agent.start_again();
        assert!(!is_refused(&agent, "shut"));
        let instead = refused(&agent)["instead"].to_string();
        assert!(
            instead.contains("no rules are in force"),
            "{damage}: {instead}"
        );
        let said = agent
            .log()
            .contains("what was kept as last good is not taken");
        assert_eq!(said, damage == "damaged", "{}", agent.log());
        // Adaptive limits are measured and published all the same.
        until::holds("ticks", SOON, || {
            agent.ask_http("GET", "/readyz", "").status == 200
        });
    }
}

#[test]
fn field_b12_rules_that_cannot_be_kept_are_said_and_in_force() {
    let mut agent = killed(GOOD);
    forget(&agent);
    fs::write(agent.runtime_dir().join("last-good"), "in the way").expect("it is ours");
    agent.start_again();
    assert!(is_refused(&agent, "shut") && refused(&agent).is_null());
    let told = || agent.log().contains("what is in force is not kept");
    until::holds("it is said", SOON, told);
}

#[test]
fn field_b12_each_tenant_has_last_good_rules_of_its_own() {
    let config =
        format!("{CALM}\n[[tenant]]\nname = \"shop\"\nuid = 65533\nrules_dir = \"shop.d\"\n");
    let mut agent = Agent::start_logging(GOOD, &config);
    let shop = agent.rules_dir().with_file_name("shop.d");
    fs::create_dir(&shop).expect("it is ours");
    let rules = |agent: &Agent| {
        let rules = agent.get("/v1/rules");
        let all = rules["rules"].as_array().cloned().unwrap_or_default();
        let named = all
            .iter()
            .map(|rule| format!("{} {}", rule["tenant"], rule["resource"]));
        named.collect::<Vec<_>>()
    };
    fs::write(shop.join("a.toml"), OTHER).expect("it is ours");
    // It listens to signals once it answers.
    agent.get("/v1/status");
    agent.reload();
    let both = ["\"default\" \"shut\"", "\"shop\" \"other\""];
    until::holds("both tenants' rules", SOON, || rules(&agent) == both);
    wait_until_kept(&agent, 2);
    agent.kill();
    fs::write(shop.join("a.toml"), BAD).expect("it is ours");
    agent.write_rules("[[flow]]\nresource = \"new\"\ncount = 0\n");
    agent.start_again();
    assert_eq!(rules(&agent), ["\"default\" \"new\"", "\"shop\" \"other\""]);
}

#[test]
fn field_b12_a_strict_start_ends_with_a_fault() {
    let agent = killed(GOOD);
    agent.write_rules(BAD);
    let mut command = Program::Tidegate.command();
    let config = agent.rules_dir().with_file_name("tidegate.toml");
    command
        .arg("run")
        .arg("--strict")
        .arg("--config")
        .arg(config);
    command.arg("--runtime-dir").arg(agent.runtime_dir());
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("test.toml:3:9"));
}
