use serde_json::json;
use tidegate_abi::decision::Outcome;
use tidegate_segment::gate::{GateVerdict, Request};

use super::*;
use crate::host::tests::agent;
use crate::tenant::callers::Caller;
use crate::tenant::decide::Waits;
use crate::tenant::question::Question;
use crate::tenant::rule_index::tests::rule_index;

const RULES: &str = r#"
    [[flow]]
    id = "a second"
    resource = "a"
    count = 1
    [[flow]]
    id = "at once"
    resource = "a"
    grade = "concurrency"
    count = 2
    [[flow]]
    id = "watching"
    resource = "b"
    count = 0
    mode = "observe"
    [[flow]]
    id = "in turn"
    resource = "b"
    count = 0.5
    behavior = "pace"
    max_queueing_time = "1ms"
    [[degrade]]
    id = "breaker"
    resource = "b"
    grade = "error_count"
    threshold = 5
    recovery_timeout = "10s"
    [[system]]
    id = "host"
    qps = 0
    mode = "observe"
"#;

fn own(context: &AgentState) -> &NamedTenant {
    context.tenants.default_one()
}

async fn ask(context: &AgentState, resource: &str) -> bool {
    let question = Question {
        resource,
        origin: "",
        context: "",
        request: Request::default(),
    };
    match own(context)
        .tenant
        .decide(&Caller::HOST.into(), &question, Waits::HELD)
        .await
    {
        GateVerdict::Admitted(pass) => {
            own(context).tenant.exit(pass, Outcome::Ok);
            true
        }
        GateVerdict::Refused(_) => false,
        GateVerdict::Stale => panic!("stale"),
    }
}

/// Asks, and stays in flight.
async fn stay(context: &AgentState, resource: &str) {
    let question = Question {
        resource,
        origin: "",
        context: "",
        request: Request::default(),
    };
    let tenant = &own(context).tenant;
    let verdict = tenant
        .decide(&Caller::HOST.into(), &question, Waits::HELD)
        .await;
    assert!(matches!(verdict, GateVerdict::Admitted(_)), "{verdict:?}");
}

/// The rules of a resource by their ids.
fn rules(context: &AgentState, resource: &str) -> serde_json::Map<String, Value> {
    let explained = ExplainReport::of(context, own(context), resource).unwrap();
    let explained = serde_json::to_value(explained).unwrap();
    let rules = explained["rules"].as_array().unwrap().iter();
    rules
        .map(|rule| (rule["id"].as_str().unwrap().to_owned(), rule.clone()))
        .collect()
}

#[tokio::test]
async fn every_rule_tells_what_it_refused_the_last_figures_and_how_it_is() {
    let context = agent();
    let directory = own(&context).tenant.directory();
    directory.publish(rule_index(RULES), 0).unwrap();
    assert!(ask(&context, "b").await);
    assert!(!ask(&context, "b").await);
    let rules = rules(&context, "b");
    let ids: Vec<_> = rules.keys().map(String::as_str).collect();
    assert_eq!(ids, ["breaker", "host", "in turn", "watching"]);
    let paced = &rules["in turn"];
    assert_eq!(paced["refused_total"], 1);
    assert_eq!(paced["last"]["limit"], 1, "ms");
    assert!(paced["last"]["value"].as_u64().unwrap() > 1000, "{paced}");
    assert_eq!(paced["now"]["rate"], 0.5);
    let watching = &rules["watching"];
    assert_eq!(
        (&watching["refused_total"], &watching["observed_total"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(
        (&watching["last"]["value"], &watching["last"]["limit"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(rules["breaker"]["now"]["breaker"], "closed");
    assert_eq!(rules["breaker"]["now"]["calls"], 1);
    assert_eq!(rules["host"]["observed_total"], 2);
}

#[tokio::test]
async fn a_new_rule_is_not_told_to_have_refused_what_the_one_before_it_did() {
    let context = agent();
    let tenant = &own(&context).tenant;
    let rule = |id: &str| format!("[[flow]]\nid = \"{id}\"\nresource = \"a\"\ncount = 0");
    tenant.publish(rule_index(&rule("old")), 0).unwrap();
    assert!(!ask(&context, "a").await);
    assert_eq!(rules(&context, "a")["old"]["refused_total"], 1);
    tenant
        .publish(rule_index(&rule("new")), 10_000_000)
        .unwrap();
    let new = &rules(&context, "a")["new"];
    assert_eq!(
        (&new["refused_total"], &new["last"]),
        (&json!(0), &json!(null))
    );
    assert!(!ask(&context, "a").await);
    let new = &rules(&context, "a")["new"];
    assert_eq!(new["refused_total"], 1);
    assert_eq!(new["last"]["limit"], 0);
}

#[tokio::test]
async fn plain_rules_are_told_apart_by_what_they_count() {
    let context = agent();
    let directory = own(&context).tenant.directory();
    let plain = "[[flow]]\nid = \"a second\"\nresource = \"a\"\ncount = 1\n\
                 [[flow]]\nid = \"at once\"\nresource = \"c\"\ngrade = \"concurrency\"\ncount = 0";
    directory.publish(rule_index(plain), 0).unwrap();
    let mut refused = 0;
    for _call in 0..3 {
        refused += u64::from(!ask(&context, "a").await);
    }
    assert!(!ask(&context, "c").await);
    let of_a = rules(&context, "a");
    assert_eq!(of_a["a second"]["refused_total"], refused);
    assert_eq!(of_a["a second"]["now"]["limit"], 1.0);
    let last = &of_a["a second"]["last"];
    assert_eq!((&last["value"], &last["limit"]), (&json!(1), &json!(1)));
    let of_c = rules(&context, "c");
    assert_eq!(of_c["at once"]["refused_total"], 1);
    assert_eq!(of_c["at once"]["last"]["limit"], 0);
}

/// A rule of a resource that lets everything pass, and the last figures of what it would have refused.
fn observed(context: &AgentState, resource: &str, id: &str) -> [u64; 3] {
    let rule = &rules(context, resource)[id];
    assert_eq!(rule["refused_total"], 0, "{rule}");
    let figures = ["/observed_total", "/last/value", "/last/limit"];
    figures.map(|figure| {
        let told = rule.pointer(figure).and_then(Value::as_u64);
        told.unwrap_or_else(|| panic!("{figure} of {rule}"))
    })
}

#[tokio::test]
async fn rules_that_observe_tell_the_last_request_that_they_would_have_refused() {
    let context = agent();
    let directory = own(&context).tenant.directory();
    let flow = |id: &str, resource: &str, more: &str| {
        format!("[[flow]]\nid = \"{id}\"\nresource = \"{resource}\"\nmode = \"observe\"\n{more}\n")
    };
    // The time that the calls take must not show, so no second has room for any.
    let (a_second, at_once) = ("count = 0", "grade = \"concurrency\"\ncount = 2");
    let rules = [
        flow("a second", "a", a_second),
        flow("at once", "b", at_once),
        flow("of two, a second", "c", a_second),
        flow("of two, at once", "c", at_once),
        "[[flow]]\nresource = \"d\"\ncount = 100\n".to_owned(),
        flow("beside it", "d", a_second),
    ];
    directory.publish(rule_index(&rules.concat()), 0).unwrap();
    for resource in ["a", "b", "c", "d"] {
        for _call in 0..5 {
            stay(&context, resource).await;
        }
    }
    for (resource, id) in [
        ("a", "a second"),
        ("c", "of two, a second"),
        ("d", "beside it"),
    ] {
        let [total, value, limit] = observed(&context, resource, id);
        assert_eq!((total, limit), (5, 0), "{id}");
        assert!(value < 5, "{id}: {value}");
    }
    for (resource, id) in [("b", "at once"), ("c", "of two, at once")] {
        assert_eq!(observed(&context, resource, id), [3, 4, 2], "{id}");
    }
    let host = "[[system]]\nid = \"host\"\nconcurrency = 15\nmode = \"observe\"";
    directory.publish(rule_index(host), 10_000_000).unwrap();
    stay(&context, "a").await;
    assert_eq!(observed(&context, "a", "host"), [1, 20, 15]);
}

#[tokio::test]
async fn a_resource_that_nobody_asked_for_has_its_rules_and_is_not_made() {
    let context = agent();
    let directory = own(&context).tenant.directory();
    directory
        .publish(
            rule_index("[[flow]]\nid = \"all\"\nresource = \"x.*\"\nregex = true\ncount = 1"),
            0,
        )
        .unwrap();
    let before = directory.list().len();
    let explained = ExplainReport::of(&context, own(&context), "xyz").unwrap();
    let explained = serde_json::to_value(explained).unwrap();
    assert_eq!(explained["counted_as"], Value::Null);
    assert_eq!(explained["rules"][0]["id"], "all");
    assert_eq!(explained["rules"][0]["now"], Value::Null);
    assert_eq!(directory.list().len(), before);
    assert!(ExplainReport::of(&context, own(&context), "y").is_none());
}
