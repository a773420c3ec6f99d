//! What the agent says of rules and files: what has no effect, what has ended, and what others name it.

#![cfg(test)]

use std::fs;

use serde_json::Value;
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::until::{self, SOON};

const IDLE: &str = r#"
[[flow]]
id = "off"
resource = "order"
count = 5
mode = "off"
[[flow]]
id = "shared"
resource = "order"
count = 5
cluster = { flow_id = 7, threshold = "global", fallback_to_local = false }
[[flow]]
id = "literal"
resource = "report-.*"
count = 5
"#;

/// What a command says, on both streams.
fn said(agent: &Agent, arguments: &[&str]) -> String {
    let mut command = Program::Tidegate.command();
    command.args(arguments);
    command.arg("--runtime-dir").arg(agent.runtime_dir());
    let output = command.output().expect("the command runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn warnings(value: &Value) -> Vec<String> {
    let list = value.as_array().expect("a list of warnings").iter();
    list.map(|warning| warning["text"].as_str().expect("it is told").to_owned())
        .collect()
}

#[test]
fn field_r8_a_rule_that_cannot_act_is_said_everywhere() {
    let agent = Agent::start_logging(IDLE, CALM);
    fs::write(agent.rules_dir().join("more.yaml"), "").expect("the directory is ours");
    let status = || agent.get("/v1/status");
    until::holds("the new file is seen", SOON, || {
        warnings(&status()["warnings"]["list"]).len() == 4
    });
    let expected = [
        "more.yaml: not read",
        "flow[0].mode",
        "flow[1].cluster",
        "flow[2].resource",
    ];
    let told = warnings(&status()["warnings"]["list"]);
    for part in expected {
        assert!(
            told.iter().any(|text| text.contains(part)),
            "{part}: {told:?}"
        );
    }
    let (log, text) = (agent.log(), said(&agent, &["status", "-v"]));
    for part in expected {
        assert!(log.contains(part), "{part}: {log}");
        assert!(text.contains(part), "{part}: {text}");
    }
    let rules = agent.get("/v1/rules");
    for (index, part) in ["flow[0].mode", "flow[1].cluster", "flow[2].resource"]
        .iter()
        .enumerate()
    {
        let own = warnings(&rules["rules"][index]["warnings"]);
        assert!(own.len() == 1 && own[0].contains(part), "{part}: {own:?}");
    }
    let why = rules["rules"][0]["not_in_force"].as_str();
    assert!(why.is_some_and(|why| why.starts_with("off")), "{rules}");
    let explained = said(&agent, &["explain", "order"]);
    assert!(explained.contains("flow rule off ("), "{explained}");
    assert!(explained.contains("off: its mode says so"), "{explained}");
    assert!(
        explained.contains("passes all: it leaves them to a token server"),
        "{explained}"
    );
}

#[test]
fn field_r13_a_rule_ends_by_itself_and_the_same_text_does_not_bring_it_back() {
    let rules = "[[flow]]\nid = \"brief\"\nresource = \"order\"\ncount = 0\nexpires = \"1s\"\n";
    let agent = Agent::start_logging(rules, CALM);
    let enter = || {
        agent
            .ask_http("POST", "/v1/enter", "{\"resource\":\"order\"}")
            .status
    };
    assert_eq!(enter(), 429);
    until::holds("the rule has ended", SOON, || enter() == 200);
    let rule = || agent.get("/v1/rules")["rules"][0].clone();
    assert_eq!(
        (&rule()["in_force"], &rule()["ends_in_s"]),
        (&false.into(), &0.0.into())
    );
    assert!(
        agent.log().contains("a rule has expired"),
        "{}",
        agent.log()
    );
    let again = "[[flow]]\nid = \"second\"\nresource = \"pay\"\ncount = 0\n";
    agent.write_rules(&format!("{rules}{again}"));
    let pay = || {
        agent
            .ask_http("POST", "/v1/enter", "{\"resource\":\"pay\"}")
            .status
    };
    until::holds("the new rules are in force", SOON, || pay() == 429);
    assert_eq!(enter(), 200, "it has ended for good");
    agent.write_rules(&rules.replace("1s", "1h"));
    until::holds("a changed rule begins anew", SOON, || enter() == 429);
    let left = rule()["ends_in_s"].as_f64();
    assert!(left.is_some_and(|left| left > 3_500.0), "{left:?}");
}

#[test]
fn field_b9_the_name_of_a_file_forges_no_line() {
    let agent = Agent::start_logging("", CALM);
    let name = "a\n2026-01-01T00:00:00Z ERROR forged\u{202e}.toml";
    fs::write(agent.rules_dir().join(name), "count = 1\n").expect("the directory is ours");
    until::holds("the fault is told", SOON, || agent.log().contains("forged"));
    for text in [agent.log(), said(&agent, &["status"])] {
        assert!(!text.contains('\u{202e}'), "{text}");
        assert!(
            !text.lines().any(|line| line.starts_with("2026-01-01")),
            "{text}"
        );
    }
}
