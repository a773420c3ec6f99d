//! Rules come out of our files as they are meant.

use std::time::Duration;

use tidegate_abi::decision::Mode;
use tidegate_agent::rule::authority::Listing;
use tidegate_agent::rule::cluster::ClusterThreshold;
use tidegate_agent::rule::degrade::{GuardedResources, TripCondition};
use tidegate_agent::rule::flow::{Behavior, Grade, LimitOrigin, Strategy};
use tidegate_agent::rule::param::{ItemType, ItemValue, ParamGrade, ParamItem};
use tidegate_agent::rule::{Amount, Authority, Body, Cluster, Degrade, Flow, Param, System};

use super::given::{SECOND, amount, bodies, name, plain_flow, rules};

#[test]
fn a_short_flow_rule_has_the_defaults() {
    let text = "[[flow]]\nresource = \"a\"\ncount = 2.5\n";
    let rules = rules("orders.toml", text);
    assert_eq!(rules[0].body, Body::Flow(plain_flow("a", 2.5)));
    assert_eq!(rules[0].mode, Mode::Enforce);
    assert_eq!(rules[0].id, "orders.toml:flow[0]");
    assert_eq!(rules[0].place.to_string(), "orders.toml:1:1");
}

#[test]
fn every_field_of_a_flow_rule_counts() {
    let text = r#"
        [[flow]]
        id = "one"
        mode = "observe"
        resource = "a"
        limit_origin = "shop"
        count = 10
        strategy = "relate"
        reference = "b"
        behavior = "warm_up_pace"
        warm_up_period = "5s"
        cold_factor = 4
        max_queueing_time = "200ms"
        [flow.cluster]
        flow_id = 7
        threshold = "global"
        fallback_to_local = false
        sample_count = 5
        window = "2s"
        resource_timeout = "3s"
        client_offline_time = "4s"
    "#;
    let rules = rules("a.toml", text);
    assert_eq!(
        (rules[0].id.as_str(), rules[0].mode),
        ("one", Mode::Observe)
    );
    let cluster = Cluster {
        flow_id: 7,
        threshold: ClusterThreshold::Global,
        fallback_to_local: Some(false),
        sample_count: 5,
        window: Duration::from_secs(2),
        resource_timeout: Duration::from_secs(3),
        client_offline_time: Duration::from_secs(4),
    };
    let first = Flow {
        limit_origin: LimitOrigin::Name("shop".to_owned()),
        grade: Grade::Qps {
            window: SECOND,
            strict: false,
            behavior: Behavior::WarmUpPace {
                cold_factor: 4,
                period: Duration::from_secs(5),
                max_queueing_time: Duration::from_millis(200),
            },
        },
        strategy: Strategy::Relate("b".to_owned()),
        cluster: Some(cluster),
        ..plain_flow("a", 10.0)
    };
    assert_eq!(rules[0].body, Body::Flow(first));
}

#[test]
fn a_flow_rule_may_hold_in_every_long_window() {
    let text = r#"
        [[flow]]
        resource = "b"
        limit_origin = "other"
        count = 3
        window = "10s"
        strict = true
        strategy = "chain"
        reference = "web"
    "#;
    let flow = Flow {
        limit_origin: LimitOrigin::Other,
        grade: Grade::Qps {
            window: Duration::from_secs(10),
            strict: true,
            behavior: Behavior::Reject,
        },
        strategy: Strategy::Chain("web".to_owned()),
        ..plain_flow("b", 3.0)
    };
    assert_eq!(bodies("a.toml", text), [Body::Flow(flow)]);
}

#[test]
fn a_limit_as_large_as_the_pages_can_hold_is_valid_and_a_second_may_be_unlimited() {
    let flow = |numbers: &str| format!("[[flow]]\nresource = \"a\"\n{numbers}\n");
    let param = |numbers: &str| format!("[[param]]\nresource = \"a\"\nindex = 0\n{numbers}\n");
    for rule in [
        flow("count = 131071\nstrict = true\nwindow = \"4398s\""),
        flow("count = 16777214\nwindow = \"1day\""),
        flow("count = 4294967295"),
        param("count = 16383\nstrict = true\nwindow = \"4398s\""),
        param("count = 4194303\nwindow = \"1day\""),
        param("count = 10\nburst = 4194293"),
        param("count = 4294967295"),
    ] {
        assert_eq!(bodies("a.toml", &rule).len(), 1, "{rule}");
    }
}

#[test]
fn a_regex_matches_whole_names_alone() {
    let text = "[[flow]]\nresource = \"order-(a|b)\"\nregex = true\ncount = 1\n";
    let bodies = bodies("a.toml", text);
    let Body::Flow(flow) = &bodies[0] else {
        panic!("not a flow rule")
    };
    assert!(flow.resource.matches("order-b"));
    assert!(!flow.resource.matches("order-bc"));
    assert!(!flow.resource.matches("my-order-a"));
}

#[test]
fn breakers_of_every_grade() {
    let text = r#"
        [[degrade]]
        resource = "a"
        grade = "slow_ratio"
        threshold = 0.5
        max_rt = "50ms"
        recovery_timeout = "3s"
        [[degrade]]
        resource = "*"
        grade = "error_count"
        threshold = 20
        min_requests = 10
        stat_interval = "700ms"
        recovery_timeout = "100ms"
        [[degrade]]
        resource = "b"
        grade = "error_ratio"
        threshold = 1
        recovery_timeout = "3s"
        probe_lease = "9s"
    "#;
    let bodies = bodies("a.toml", text);
    let slow = Degrade {
        resource: GuardedResources::Name("a".to_owned()),
        trip: TripCondition::SlowRatio {
            max_rt: Duration::from_millis(50),
            threshold: amount(0.5),
        },
        min_requests: 5,
        stat_interval: SECOND,
        recovery_timeout: Duration::from_secs(3),
        probe_lease: Duration::from_secs(3),
    };
    let count = Degrade {
        resource: GuardedResources::Unguarded,
        trip: TripCondition::ErrorCount {
            threshold: amount(20.0),
        },
        min_requests: 10,
        stat_interval: Duration::from_millis(700),
        recovery_timeout: Duration::from_millis(100),
        // At least a second, however short the timeout is.
        probe_lease: SECOND,
    };
    let ratio = Degrade {
        resource: GuardedResources::Name("b".to_owned()),
        trip: TripCondition::ErrorRatio {
            threshold: Amount::ONE,
        },
        probe_lease: Duration::from_secs(9),
        ..slow.clone()
    };
    assert_eq!(bodies, [slow, count, ratio].map(Body::Degrade));
}

#[test]
fn a_parameter_rule_with_values_of_their_own() {
    let text = r#"
        [[param]]
        resource = "a"
        index = -1
        count = 5
        window = "3s"
        burst = 2
        [[param.items]]
        value = "vip"
        count = 50
        [[param.items]]
        value = 7
        count = 1
        [[param.items]]
        value = "1.5"
        type = "double"
        count = 2
    "#;
    let item = |kind, value, count| ParamItem { kind, value, count };
    let param = Param {
        resource: name("a"),
        index: -1,
        count: 5,
        grade: ParamGrade::Bucket {
            window: Duration::from_secs(3),
            burst: 2,
            strict: false,
        },
        items: vec![
            item(ItemType::Text, ItemValue::Text("vip".to_owned()), 50),
            item(ItemType::Long, ItemValue::Integer(7), 1),
            item(ItemType::Double, ItemValue::Float(1.5_f64.to_bits()), 2),
        ],
        cluster: None,
    };
    assert_eq!(bodies("a.toml", text), [Body::Param(param)]);
}

#[test]
fn parameters_may_be_paced() {
    let text = r#"
        [[param]]
        resource = "b"
        index = 0
        count = 1
        behavior = "pace"
        max_queueing_time = "250ms"
    "#;
    let pace = Param {
        resource: name("b"),
        index: 0,
        count: 1,
        grade: ParamGrade::Pace {
            window: SECOND,
            max_queueing_time: Duration::from_millis(250),
        },
        items: Vec::new(),
        cluster: None,
    };
    assert_eq!(bodies("a.toml", text), [Body::Param(pace)]);
}

#[test]
fn marks_and_lists_of_origins() {
    let text = r#"
        [[system]]
        cpu = 0.9
        concurrency = 0
        [[authority]]
        resource = "a"
        strategy = "deny"
        origins = ["x", " y"]
    "#;
    let system = System {
        cpu: Some(amount(0.9)),
        concurrency: Some(0),
        ..System::default()
    };
    let authority = Authority {
        resource: "a".to_owned(),
        listing: Listing::Deny,
        origins: vec!["x".to_owned(), " y".to_owned()],
    };
    let expected = [Body::Authority(authority), Body::System(system)];
    assert_eq!(bodies("a.toml", text), expected);
}
