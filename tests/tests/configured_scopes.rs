//! What is said of scopes that the configuration names: that no group is there for one, and that its CPUs are declared.

#![cfg(test)]

use std::fs;
use std::path::Path;

use serde_json::Value;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::program::Program;
use tidegate_tests::{skip, until};

/// Words of a text, whatever its lines.
fn words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a subcommand says of a configuration, with the agent at hand.
fn said(agent: &Agent, form: &[&str]) -> String {
    let mut command = Program::Tidegate.command();
    let output = command
        .args(form)
        .arg("--runtime-dir")
        .arg(agent.runtime_dir())
        .output()
        .expect("it starts");
    words(&output.stdout)
}

fn scope<'s>(status: &'s Value, list: &str, name: &str) -> Option<&'s Value> {
    let scopes = status[list].as_array()?;
    scopes.iter().find(|scope| scope["name"] == name)
}

fn has_metric(agent: &Agent, line: &str) -> bool {
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    metrics.lines().any(|told| told == line)
}

#[test]
fn field_s12_a_scope_without_a_group_is_told_everywhere() {
    let config = "[[scope]]\nname = \"typo\"\ncgroup = \"/system.slice/brun.service\"\n\
                  [[scope]]\nname = \"pods\"\ncgroup = \"/tidegate-no-pods/*\"\n";
    let agent = Agent::start_logging("", &format!("{CALM}{config}"));
    let status = || agent.get("/v1/status");
    until::holds("a scope without a group", until::SOON, || {
        scope(&status(), "scopes_without_group", "typo").is_some()
    });
    let status = status();
    let typo = scope(&status, "scopes_without_group", "typo").expect("it is told");
    assert_eq!(typo["cgroup"], "/system.slice/brun.service");
    let text = typo["text"].as_str().expect("it is text");
    assert!(
        text.contains("no group at /system.slice/brun.service: "),
        "{text}"
    );
    assert!(has_metric(
        &agent,
        "tidegate_configured_scope_groups{scope=\"typo\"} 0"
    ));
    assert!(has_metric(
        &agent,
        "tidegate_configured_scope_groups{scope=\"pods\"} 0"
    ));
    let said = said(&agent, &["status"]);
    let finding = "! scope typo: no group at /system.slice/brun.service: ";
    assert!(said.contains(finding), "{said}");
    assert!(
        said.contains("pods no group no group at /tidegate-no-pods/*: "),
        "{said}"
    );
    until::holds("a line of the log", until::SOON, || {
        agent
            .log()
            .contains("scope typo: no group at /system.slice/brun.service: ")
    });
    let doctor = doctor(config);
    assert!(
        doctor.contains("!! scopes typo: no group at /system.slice/brun.service: "),
        "{doctor}"
    );
}

/// What the doctor says of a configuration of its own.
fn doctor(config: &str) -> String {
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("tidegate.toml");
    fs::write(&file, config).expect("it can be written");
    let mut command = Program::Tidegate.command();
    let output = command.arg("doctor").arg("--config").arg(&file).output();
    words(&output.expect("it starts").stdout)
}

#[test]
fn field_s19_a_group_that_only_other_controllers_have_is_told_with_what_makes_one() {
    let pids = Path::new("/sys/fs/cgroup/pids");
    let name = format!("tidegate-test-other-{}", std::process::id());
    let group = pids.join(&name);
    if !Path::new("/sys/fs/cgroup/cpu").exists() || fs::create_dir(&group).is_err() {
        return skip::skip("needs root and cgroup v1 under /sys/fs/cgroup/cpu and pids");
    }
    let config = format!("{CALM}[[scope]]\nname = \"plain\"\ncgroup = \"/{name}\"\n");
    let agent = Agent::start("", &config);
    let told = until::found("a scope without a group", until::SOON, || {
        let status = agent.get("/v1/status");
        scope(&status, "scopes_without_group", "plain").cloned()
    });
    fs::remove_dir(&group).expect("it is empty");
    let remedy = told.0["remedy"].as_str().unwrap_or_default().to_owned();
    assert!(remedy.contains("CPUAccounting=yes"), "{remedy}");
}

#[test]
fn field_s11_declared_cpus_are_told_and_that_the_quota_allows_others() {
    let Some(group) = ConfinedProcess::busy("declared") else {
        return;
    };
    group.limit(50_000);
    let table = format!(
        "[[scope]]\nname = \"declared\"\ncgroup = \"/{}\"\ncpus = 2.0\n",
        group.cgroup.trim_start_matches('/')
    );
    let agent = Agent::start_logging("", &format!("{CALM}{table}"));
    let status = until::found("a scope with declared CPUs", until::SOON, || {
        let status = agent.get("/v1/status");
        let declared = scope(&status, "scopes", "declared")?;
        (!declared["declared_cpus"]["allowed"].is_null()).then_some(status)
    });
    let status = status.0;
    let declared = &scope(&status, "scopes", "declared").expect("it is there")["declared_cpus"];
    assert_eq!(
        [&declared["cpus"], &declared["allowed"]],
        [2.0, 0.5],
        "{declared}"
    );
    assert_eq!(declared["conflict"], true);
    let text = "2 CPUs are declared (cpus in its [[scope]]), its quota allows 0.5: ";
    for (name, value) in [("cpus", 2), ("cpus_conflict", 1)] {
        let line = format!("tidegate_scope_declared_{name}{{scope=\"declared\"}} {value}");
        assert!(has_metric(&agent, &line), "{line}");
    }
    assert!(said(&agent, &["status"]).contains(&format!("! declared: {text}")));
    until::holds("a line of the log", until::SOON, || {
        agent.log().contains(&format!("declared: {text}"))
    });
    let doctor = doctor(&table);
    assert!(
        doctor.contains(&format!("!! scopes declared: {text}")),
        "{doctor}"
    );
}
