//! Rules come out of Sentinel's files with the meaning they have there.

use std::time::Duration;

use tidegate_abi::decision::RefusalKind;
use tidegate_agent::rule::authority::Listing;
use tidegate_agent::rule::degrade::{GuardedResources, TripCondition};
use tidegate_agent::rule::flow::{Behavior, Grade, Strategy};
use tidegate_agent::rule::param::{ItemType, ItemValue, ParamGrade, ParamItem};
use tidegate_agent::rule::{
    Amount, Authority, Body, Degrade, Flow, Param, QuirksOption, Rule, RuleSet, System,
};
use tidegate_agent::rule_source::form::read;
use tidegate_agent::schema::source::Source;

use super::given::{SECOND, amount, bodies, name, plain_flow, rules};

#[test]
fn sentinel_flow_rules_mean_the_same() {
    let text = r#"[
        {"resource": "a", "count": 2.5, "id": 17, "limitApp": "", "app": "shop"},
        {"resource": "b", "count": 3.0, "grade": 0, "controlBehavior": 2, "maxQueueingTimeMs": 0},
        {"resource": "c", "count": 20.0, "controlBehavior": 2, "maxQueueingTimeMs": 300},
        {"resource": "d", "count": 5, "strategy": 2, "refResource": "web", "controlBehavior": 9},
        {"resource": "e", "count": 5, "strategy": 1, "grade": 0}
    ]"#;
    let rules = rules("rules.json", text);
    assert_eq!(
        (rules[0].id.as_str(), rules[1].id.as_str()),
        ("17", "rules.json:[1]")
    );
    let in_flight = Flow {
        grade: Grade::Concurrency,
        ..plain_flow("b", 3.0)
    };
    let paced = Flow {
        grade: Grade::Qps {
            window: SECOND,
            strict: false,
            behavior: Behavior::Pace {
                max_queueing_time: Duration::from_millis(300),
            },
        },
        ..plain_flow("c", 20.0)
    };
    let chain = Flow {
        strategy: Strategy::Chain("web".to_owned()),
        ..plain_flow("d", 5.0)
    };
    let nowhere = Flow {
        grade: Grade::Concurrency,
        strategy: Strategy::Nowhere,
        ..plain_flow("e", 5.0)
    };
    let expected = [plain_flow("a", 2.5), in_flight, paced, chain, nowhere].map(Body::Flow);
    let bodies: Vec<Body> = rules.into_iter().map(|rule| rule.body).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn sentinel_rules_of_the_other_kinds_mean_the_same() {
    let text = r#"[
        {"resource": "e", "grade": 0, "count": 99.5, "timeWindow": 2, "slowRatioThreshold": 0.0},
        {"resource": "f", "count": 6.9, "paramIdx": 0, "paramFlowItemList":
            [{"object": "7", "count": 1, "classType": "int"}]},
        {"avgRt": 50, "qps": 3.0, "maxThread": -1},
        {"resource": "g", "limitApp": "x, y", "strategy": 1}
    ]"#;
    let degrade = Degrade {
        resource: GuardedResources::Name("e".to_owned()),
        trip: TripCondition::SlowRatio {
            // Rounded half up, as Sentinel compares.
            max_rt: Duration::from_millis(100),
            threshold: Amount::ZERO,
        },
        min_requests: 5,
        stat_interval: SECOND,
        recovery_timeout: Duration::from_secs(2),
        probe_lease: Duration::from_secs(2),
    };
    let param = Param {
        resource: name("f"),
        index: 0,
        // Truncated, as in Sentinel.
        count: 6,
        grade: ParamGrade::Bucket {
            window: SECOND,
            burst: 0,
            strict: false,
        },
        items: vec![ParamItem {
            kind: ItemType::Int,
            value: ItemValue::Integer(7),
            count: 1,
        }],
        cluster: None,
    };
    let system = System {
        avg_rt: Some(Duration::from_millis(50)),
        qps: Some(amount(3.0)),
        ..System::default()
    };
    let authority = Authority {
        resource: "g".to_owned(),
        listing: Listing::Deny,
        origins: vec!["x".to_owned(), " y".to_owned()],
    };
    let expected = [
        Body::Degrade(degrade),
        Body::Param(param),
        Body::System(system),
        Body::Authority(authority),
    ];
    assert_eq!(bodies("rules.json", text), expected);
}

#[test]
fn what_a_dashboard_stores_with_a_rule_is_taken_in_silence() {
    let stored = r#""id": 4, "app": "shop", "ip": "10.0.0.7", "port": 8719, "gmtCreate": 1700000000000,
        "gmtModified": "2026-11-30 10:00:00", "limitApp": "default", "regex": false"#;
    let kinds = [
        r#""resource": "a", "count": 5, "grade": 1, "strategy": 0, "refResource": null, "controlBehavior": 0,
            "warmUpPeriodSec": null, "maxQueueingTimeMs": null, "clusterMode": false,
            "clusterConfig": {"flowId": null, "thresholdType": 0, "fallbackToLocalWhenFail": true, "strategy": 0,
            "sampleCount": 10, "windowIntervalMs": 1000, "resourceTimeout": 2000, "resourceTimeoutStrategy": 0,
            "acquireRefuseStrategy": 0, "clientOfflineTime": 2000}"#,
        r#""resource": "a", "count": 50, "grade": 0, "timeWindow": 10, "minRequestAmount": 5,
            "slowRatioThreshold": 0.5, "statIntervalMs": 1000, "rtSlowRequestAmount": 5"#,
        r#""resource": "a", "count": 5, "grade": 1, "paramIdx": 0, "durationInSec": 1, "burstCount": 0,
            "controlBehavior": 0, "maxQueueingTimeMs": 0, "paramFlowItemList":
            [{"object": "7", "count": 1, "classType": "int"}], "clusterMode": false, "clusterConfig": null"#,
        r#""highestSystemLoad": -1.0, "highestCpuUsage": 0.8, "avgRt": -1, "maxThread": -1, "qps": -1.0"#,
        r#""resource": "a", "strategy": 1"#,
    ];
    for fields in kinds {
        let text = format!("[{{{stored}, {fields}}}]");
        let read = read("rules.json".as_ref(), &Source::new("rules.json", text));
        assert_eq!((read.faults, read.warnings), (vec![], vec![]), "{fields}");
        assert_eq!(read.rules.len(), 1, "{fields}");
    }
}

#[test]
fn the_name_of_a_sentinel_file_tells_the_kind_where_fields_do_not() {
    let text = r#"[{"resource": "a", "limitApp": "x"}]"#;
    let kind = |file: &str| rules(file, text)[0].body.kind();
    assert_eq!(kind("AuthorityRule.json"), RefusalKind::Authority);
    assert_eq!(kind("my-flow-rules.json"), RefusalKind::Flow);
    assert_eq!(kind("rules.json"), RefusalKind::Authority);
}

/// What is said of a file that is taken: hints, in the order of the file.
fn hints(file: &str, text: &str) -> Vec<String> {
    let read = read(file.as_ref(), &Source::new(file, text));
    assert_eq!(read.faults, [], "{text}");
    read.warnings.into_iter().map(|one| one.hint).collect()
}

fn built(quirks: QuirksOption, text: &str) -> RuleSet {
    RuleSet::build(rules("rules.json", text), quirks).unwrap()
}

#[test]
fn field_r2_ids_of_sentinels_files_are_labels() {
    let one = |file: &str| rules(file, r#"[{"id": 1, "resource": "a", "count": 1}]"#);
    let two = rules("b.json", r#"[{"id": 1, "resource": "b", "count": 1}]"#);
    let ids = |rules: Vec<Rule>| -> Vec<String> {
        let set = RuleSet::build(rules, QuirksOption::None).unwrap();
        set.rules().iter().map(|rule| rule.id.clone()).collect()
    };
    assert_eq!(
        ids([one("a.json"), two.clone()].concat()),
        ["1", "b.json:[0]"]
    );
    // A rule of our own form keeps its id, wherever it stands.
    let own = rules(
        "z.toml",
        "[[flow]]\nid = \"1\"\nresource = \"z\"\ncount = 1",
    );
    assert_eq!(ids([two, own].concat()), ["b.json:[0]", "1"]);
}

#[test]
fn field_r3_a_list_of_callers_is_as_long_as_it_must() {
    let callers: Vec<String> = (0..3_000)
        .map(|number| format!("caller-{number}"))
        .collect();
    let text = format!(
        r#"[{{"resource": "a", "limitApp": "{}"}}]"#,
        callers.join(",")
    );
    let [Body::Authority(authority)] = &bodies("authority.json", &text)[..] else {
        panic!("one authority rule")
    };
    assert_eq!(authority.origins, callers);
    let long = "x".repeat(256);
    let text = format!(r#"[{{"resource": "a", "limitApp": "web,{long}"}}]"#);
    let read = read(
        "authority.json".as_ref(),
        &Source::new("authority.json", text),
    );
    assert_eq!(read.faults[0].hint, "origin 2: it is too long");
}

#[test]
fn field_r5_a_number_is_meant_with_any_type_of_that_value() {
    let text = r#"[{"resource": "a", "paramIdx": 0, "count": 9, "paramFlowItemList":
        [{"object": "1001", "classType": "long", "count": 5}, {"object": "1.5", "classType": "float", "count": 6}]}]"#;
    let items = |quirks| {
        let set = built(quirks, text);
        let Body::Param(param) = &set.rules()[0].body else {
            panic!("a parameter rule")
        };
        param.items.clone()
    };
    let item = |kind, value, count| ParamItem { kind, value, count };
    let given = [
        item(ItemType::Long, ItemValue::Integer(1001), 5),
        item(ItemType::Float, ItemValue::Float(1.5_f64.to_bits()), 6),
    ];
    assert_eq!(items(QuirksOption::Sentinel189), given);
    let untyped = [
        item(ItemType::Int, ItemValue::Integer(1001), 5),
        item(ItemType::Double, ItemValue::Float(1001_f64.to_bits()), 5),
        item(ItemType::Double, ItemValue::Float(1.5_f64.to_bits()), 6),
    ];
    assert_eq!(
        items(QuirksOption::None),
        [&given[..], &untyped[..]].concat()
    );
}

#[test]
fn field_r7_a_list_of_callers_holds_each_of_them_and_with_quirks_nobody() {
    let text = r#"[{"id": 7, "resource": "a", "count": 2, "limitApp": "appA, appB"},
        {"resource": "a", "limitApp": "appA, appB", "strategy": 1}]"#;
    let said = hints("rules.json", text);
    assert!(
        said.len() == 2 && said.iter().all(|hint| hint.contains("quirks")),
        "{said:?}"
    );
    let origins = |quirks| -> Vec<String> {
        let set = built(quirks, text);
        let of = |rule: &Rule| match &rule.body {
            Body::Flow(flow) => format!("{} {:?}", rule.id, flow.limit_origin),
            body @ (Body::Authority(_) | Body::System(_) | Body::Param(_) | Body::Degrade(_)) => {
                format!("{body:?}")
            }
        };
        set.rules().iter().map(of).collect()
    };
    let deny = |second| {
        format!(
            "Authority(Authority {{ resource: \"a\", listing: Deny, origins: [\"appA\", \"{second}\"] }})"
        )
    };
    let literal = "7 Name(\"appA, appB\")".to_owned();
    assert_eq!(origins(QuirksOption::Sentinel189), [literal, deny(" appB")]);
    let each = ["7:appA Name(\"appA\")", "7:appB Name(\"appB\")"].map(str::to_owned);
    assert_eq!(
        origins(QuirksOption::None),
        [&each[..], &[deny("appB")]].concat()
    );
}

#[test]
fn field_r8_what_is_odd_about_a_list_of_callers_stands_beside_the_rule_of_each() {
    let text = r#"[{"resource": "a", "count": 2, "limitApp": "appA,appB"}, {"resource": "b", "count": 2}]"#;
    let file = read("rules.json".as_ref(), &Source::new("rules.json", text));
    let set = RuleSet::build(file.rules, QuirksOption::None).unwrap();
    let set = set.with_warnings(file.warnings);
    let beside = set.rules().iter().map(|rule| set.warnings_of(rule).count());
    assert_eq!(beside.collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn field_r8_a_second_list_of_origins_is_not_called_a_repetition() {
    let text = r#"[{"resource": "a", "limitApp": "b", "strategy": 1},
        {"resource": "a", "limitApp": "c", "strategy": 1}]"#;
    let set = built(QuirksOption::None, text);
    let said: Vec<_> = set.warnings().iter().map(|one| &one.hint).collect();
    let wanted = "it is ignored: a resource has one list of origins, and rules.json:[0] has it; add these there";
    assert_eq!(said, [wanted]);
}

#[test]
fn field_r11_warm_up_is_told_where_queueing_may_be_meant() {
    let said = |fields: &str| {
        let text = format!(r#"[{{"resource": "a", "count": 5, "grade": 1, {fields}}}]"#);
        hints("flow.json", &text)
    };
    let note = ["1 is warm up; queueing is 2"];
    assert_eq!(said(r#""controlBehavior": 1"#), note);
    assert_eq!(
        said(r#""controlBehavior": 1, "warmUpPeriodSec": 10, "maxQueueingTimeMs": 2000"#),
        [note[0], "nobody waits"]
    );
    assert!(said(r#""controlBehavior": 1, "warmUpPeriodSec": 10"#).is_empty());
    assert!(said(r#""controlBehavior": 2, "maxQueueingTimeMs": 2000"#).is_empty());
    assert_eq!(said(r#""controlBehavior": 9"#), ["it acts as 0 (reject)"]);
}

#[test]
fn field_r8_a_count_that_is_not_given_is_told_for_it_refuses_everything() {
    let note = ["without it the count is 0, which refuses everything"];
    for text in [
        r#"[{"resource": "a", "grade": 1}]"#,
        r#"[{"resource": "a", "count": null, "grade": 1}]"#,
    ] {
        assert_eq!(hints("flow.json", text), note, "{text}");
    }
    let zero = r#"[{"resource": "a", "count": 0, "grade": 1}]"#;
    assert!(hints("flow.json", zero).is_empty());
}

#[test]
fn field_r12_a_single_object_is_a_list_of_one() {
    let one = r#"{"resource": "a", "count": 5, "grade": 1}"#;
    assert_eq!(
        bodies("flow.json", one),
        bodies("flow.json", &format!("[{one}]"))
    );
}
