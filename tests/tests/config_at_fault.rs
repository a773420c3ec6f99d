//! An agent that starts while its configuration is at fault: it runs on the last good one, and says so everywhere.

#![cfg(test)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Child;

use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::reload_state::{is_metric_good, refused, status};
use tidegate_tests::until::{self, SOON};

const SHUT: &str = "[[flow]]\nresource = \"shut\"\ncount = 0\n";
/// What tells a configuration from the defaults.
const SHOP: &str = "[[tenant]]\nname = \"shop\"\nuid = 65533\n";
const TYPO: &str = "[[tenant]]\nnome = \"shop\"\nuid = 65533\n";

fn kept(agent: &Agent) -> PathBuf {
    let folder = agent.runtime_dir().join("last-good");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.path());
    let is_configuration = |path: &PathBuf| path.to_string_lossy().ends_with(".configuration.json");
    names.find(is_configuration).unwrap_or_default()
}

fn has_shop(agent: &Agent) -> bool {
    let status = agent.get("/v1/status");
    let pages = status["agent"]["pages"].as_array().cloned();
    pages.is_some_and(|pages| pages.iter().any(|page| page["tenant"] == "shop"))
}

fn kept_text(agent: &Agent) -> String {
    fs::read_to_string(kept(agent)).unwrap_or_default()
}

/// An agent whose good configuration is kept, killed.
fn killed() -> Agent {
    let mut agent = Agent::start_logging(SHUT, &format!("{CALM}{SHOP}"));
    until::holds("the configuration is kept", SOON, || {
        kept_text(&agent).contains("65533")
    });
    agent.kill();
    agent
}

/// One that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().expect("it can be waited for");
    }
}

/// Starts the agent with what the defaults would share with every other one on the machine set on the command line.
fn start_anywhere(agent: &Agent) -> Running {
    let log = agent.rules_dir().with_file_name("log");
    let log = fs::OpenOptions::new().append(true).open(log);
    let mut command = Program::Tidegate.command();
    command.args(["run", "--metrics-listen", "off", "--config"]);
    command.arg(agent.rules_dir().with_file_name("tidegate.toml"));
    command.arg("--runtime-dir").arg(agent.runtime_dir());
    command.stderr(log.expect("the agent has a log"));
    let running = Running(command.spawn().expect("it starts"));
    until::holds("an agent that serves", SOON, || agent.serves());
    running
}

fn is_shut(agent: &Agent) -> bool {
    let body = "{\"resource\":\"shut\"}";
    agent.ask_http("POST", "/v1/enter", body).status == 429
}

#[test]
fn field_b12_a_fault_in_the_configuration_at_the_start_leaves_the_last_good_one_in_force() {
    let mut agent = killed();
    agent.write_config(TYPO);
    agent.start_again();
    assert!(has_shop(&agent));
    assert!(is_shut(&agent), "its rules are in force");
    let told = refused(&agent);
    assert!(told["faults"].as_u64().is_some_and(|faults| faults > 0));
    assert_eq!(told["of"], "configuration");
    assert_eq!(told["instead"], "the last good configuration is in force");
    assert!(!is_metric_good(&agent));
    let text = status(&agent);
    let told = text.split(" ! configuration refused at the start ").nth(1);
    assert!(
        told.is_some_and(|told| told.contains("tidegate.toml:")),
        "{text}"
    );
    assert!(
        agent
            .log()
            .contains("the last good configuration is in force")
    );
    // A restart with the same fault is on the same configuration.
    agent.kill();
    agent.start_again();
    assert!(has_shop(&agent));
    // As soon as the file is right, it counts, and is what the next start can fall back to.
    agent.write_config(&format!("{CALM}{SHOP}# right\n"));
    until::holds("the file is taken", SOON, || {
        refused(&agent).is_null() && is_metric_good(&agent)
    });
    until::holds("it is kept", SOON, || kept_text(&agent).contains("# right"));
    assert!(!status(&agent).contains("refused at the start"));
}

#[test]
fn field_b12_files_beside_the_configuration_are_part_of_the_last_good_one() {
    let mut agent = killed();
    let beside = agent.rules_dir().with_file_name("conf.d");
    fs::create_dir(&beside).expect("it is ours");
    let file = beside.join("10-tick.toml");
    fs::write(&file, "tick = \"50ms\"\n").expect("it is ours");
    agent.start_again();
    assert_eq!(agent.get("/v1/status")["agent"]["tick_ms"], 50.0);
    until::holds("both files are kept", SOON, || {
        kept_text(&agent).contains("50ms")
    });
    agent.kill();
    fs::write(&file, "tick =\n").expect("it is ours");
    agent.start_again();
    assert_eq!(agent.get("/v1/status")["agent"]["tick_ms"], 50.0);
    let place = refused(&agent)["first_place"].to_string();
    assert!(place.contains("10-tick.toml:1:"), "{place}");
}

#[test]
fn field_b12_without_a_good_configuration_the_agent_starts_on_the_defaults_and_says_so() {
    for damage in [
        "none",
        "damaged",
        "another version's",
        "another file's",
        "others can write it",
    ] {
        let agent = killed();
        let file = kept(&agent);
        let text = fs::read_to_string(&file).expect("it is kept");
        let changed = match damage {
            "damaged" => text.replace("65533", "65532"),
            "another version's" => text.replacen("\"version\":1", "\"version\":2", 1),
            "another file's" => text.replace("tidegate.toml", "tidegate.yaml"),
            _as_it_is => text,
        };
        fs::write(&file, changed).expect("it is ours");
        match damage {
            "none" => fs::remove_file(&file).expect("it is ours"),
            "others can write it" => {
                let all = fs::Permissions::from_mode(0o666);
                fs::set_permissions(&file, all).expect("it is ours");
            }
            _as_it_is => {}
        }
        agent.write_config(TYPO);
        let _running = start_anywhere(&agent);
        assert!(!has_shop(&agent), "{damage}");
        let instead = refused(&agent)["instead"].to_string();
        assert!(
            instead.contains("the defaults are in force"),
            "{damage}: {instead}"
        );
        let said = agent
            .log()
            .contains("what was kept as last good is not taken");
        assert_eq!(said, damage != "none", "{damage}: {}", agent.log());
        // Adaptive limits are measured and published all the same.
        until::holds("ticks", SOON, || {
            agent.ask_http("GET", "/readyz", "").status == 200
        });
    }
}

#[test]
fn field_b12_a_strict_start_or_one_of_a_file_that_never_was_ends_with_a_fault() {
    let agent = killed();
    agent.write_config(TYPO);
    let run = |arguments: &[&str]| {
        let mut command = Program::Tidegate.command();
        command.arg("run").args(arguments);
        command.arg("--runtime-dir").arg(agent.runtime_dir());
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let file = agent.rules_dir().with_file_name("tidegate.toml");
    let file = file.to_string_lossy();
    let said = run(&["--strict", "--config", &file]);
    assert!(
        said.contains("tidegate.toml:") && said.contains("nome"),
        "{said}"
    );
    let said = run(&["--config", "/nowhere/tidegate.toml"]);
    assert!(said.contains("no such file"), "{said}");
}
