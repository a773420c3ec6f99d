//! `tidegate explain` and `GET /v1/explain` of an agent whose pages a service maps.

#![cfg(test)]

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::argument::text_hash;
use tidegate_client::{Arg, Client, Transport};
use tidegate_tests::agent::{Agent, CALM};
use tidegate_tests::program::Program;
use tidegate_tests::until;

const RULES: &str = r#"
[[param]]
id = "by user"
resource = "order"
index = 0
count = 3
window = "60s"
[[flow]]
id = "two at once"
resource = "order"
grade = "concurrency"
count = 2
[[flow]]
id = "a few"
resource = "order"
count = 7
window = "60s"
[[degrade]]
id = "payment"
resource = "pay"
grade = "error_count"
threshold = 0
min_requests = 1
recovery_timeout = "60s"
"#;

fn explain(agent: &Agent, arguments: &[&str]) -> Output {
    let mut command = Program::Tidegate.command();
    command.arg("explain").args(arguments);
    command.arg("--runtime-dir").arg(agent.runtime_dir());
    command.output().expect("the command runs")
}

/// The resource, explained to a program; the socket and the command say the same.
fn explained(agent: &Agent, resource: &str) -> Value {
    let output = explain(agent, &[resource, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let asked = agent.get(&format!("/v1/explain?resource={resource}"));
    for part in [
        "/resource",
        "/counted_as",
        "/counts/passed_total",
        "/counts/refused_total",
    ] {
        assert_eq!(told.pointer(part), asked.pointer(part), "{part}");
    }
    told
}

/// Of a rule: what it refused, and the value and limit of the last refusal.
fn refused(explained: &Value, id: &str) -> Value {
    let rules = explained.get("rules").and_then(Value::as_array);
    let mut rules = rules.into_iter().flatten();
    let rule = rules.find(|rule| rule.get("id") == Some(&json!(id)));
    let rule = rule.unwrap_or_else(|| panic!("no rule {id} in {explained}"));
    let last = |figure| rule.pointer(&format!("/last/{figure}"));
    json!([rule.get("refused_total"), last("value"), last("limit")])
}

fn client(agent: &Agent) -> Client {
    let client = Client::builder().runtime_dir(agent.runtime_dir()).connect();
    let client = client.expect("the agent serves");
    assert_eq!(client.status().door, Some(Transport::Shm));
    client
}

#[test]
fn each_rule_tells_what_it_refused_to_a_service_on_the_pages() {
    let agent = Agent::start(RULES, CALM);
    let client = client(&agent);
    let order = client.resource("order").expect("it is a name");
    let users = ["vip", "other", "third"].map(|user| {
        let hash = text_hash(tidegate_client::argument::ArgumentKind::Text, user);
        [Arg::One(hash)]
    });
    let ask = |user: usize| order.ask().args(&users[user]).enter();
    let held = [(); 2].map(|()| ask(0).expect("two at once"));
    assert!(ask(1).is_err(), "a third at once");
    for permit in held {
        permit.ok();
    }
    ask(0).expect("the third of this user").ok();
    assert!(ask(0).is_err(), "the fourth of this user");
    let all = explained(&agent, "order");
    assert_eq!(refused(&all, "two at once"), json!([1, 2, 2]));
    assert_eq!(refused(&all, "by user"), json!([1, 3, 3]));
    assert_eq!(refused(&all, "a few"), json!([0, null, null]));
    assert_eq!(all.pointer("/counts/passed_total"), Some(&json!(3)));
    assert_eq!(all.pointer("/counts/refused_total/param"), Some(&json!(1)));
    assert_eq!(all.pointer("/counts/refused_total/flow"), Some(&json!(1)));
    // The first tick brings the scope of the host.
    until::holds("the first tick", Duration::from_secs(10), || {
        agent.get("/v1/status").pointer("/scopes/0").is_some()
    });
    let output = explain(&agent, &["order"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "order: 3 passed, 2 refused, 0 in flight",
        "param rule by user (",
        "flow rule two at once (",
        "ago with 2 of 2\n",
        "scope host: ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_breaker_tells_what_opened_it_and_what_it_refused() {
    let agent = Agent::start(RULES, CALM);
    let client = client(&agent);
    let pay = client.resource("pay").expect("it is a name");
    pay.enter().expect("the breaker is closed").error();
    for _try in 0..2 {
        assert!(pay.enter().is_err(), "the breaker is open");
    }
    let all = explained(&agent, "pay");
    assert_eq!(refused(&all, "payment").get(0), Some(&json!(2)), "{all}");
    assert_eq!(all.pointer("/rules/0/now/breaker"), Some(&json!("open")));
    assert_eq!(all.pointer("/rules/0/now/opened_total"), Some(&json!(1)));
    assert_eq!(
        all.pointer("/counts/refused_total/degrade"),
        Some(&json!(2))
    );
}

#[test]
fn a_resource_that_nobody_knows_is_an_error() {
    let agent = Agent::start(RULES, CALM);
    for arguments in [&["nobody"][..], &["nobody", "--json"]] {
        let output = explain(&agent, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "tidegate: resource \"nobody\" is not known: nothing was asked of it and no rule is for it; \
             `tidegate status` lists those there are\n"
        );
    }
    assert_eq!(
        agent
            .ask_http("GET", "/v1/explain?resource=nobody", "")
            .status,
        404
    );
    assert_eq!(
        agent.ask_http("GET", "/v1/explain?resource=", "").status,
        400
    );
    assert_eq!(agent.ask_http("GET", "/v1/explain", "").status, 400);
    // A rule is enough to be known.
    let unasked = explain(&agent, &["pay"]);
    assert!(unasked.status.success(), "{unasked:?}");
}
