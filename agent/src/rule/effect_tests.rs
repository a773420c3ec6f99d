//! Every option of every kind of rule, in both forms of files, has an answer to "when does it have no effect?", and
//! each of these answers reaches the operator.

use super::authority::AuthorityOptions;
use super::degrade::DegradeOptions;
use super::effect::{Effects, OptionEffect};
use super::flow::FlowOptions;
use super::param::ParamOptions;
use super::system::SystemOptions;
use super::{QuirksOption, RuleSet};
use crate::rule_source::form::read;
use crate::schema::settings::OptionTable;
use crate::schema::source::Source;

/// Paths of the options that are warned of in a file of this name.
fn warned(name: &str, text: &str) -> Vec<String> {
    let read = read(name.as_ref(), &Source::new(name, text));
    assert_eq!(read.faults, [], "{text}");
    let set = RuleSet::build(read.rules, QuirksOption::None).unwrap();
    let set = set.with_warnings(read.warnings);
    set.warnings()
        .iter()
        .map(|warning| warning.option.clone())
        .collect()
}

fn keys<O: OptionTable>() -> Vec<&'static str> {
    O::default().rows().iter().map(|row| row.key).collect()
}

fn answered<O: Effects>() -> Vec<&'static str> {
    O::EFFECTS
        .iter()
        .map(|effect: &OptionEffect<O>| effect.key)
        .collect()
}

fn all_are_answered<O: OptionTable + Effects>() {
    let (mut keys, mut answered) = (keys::<O>(), answered::<O>());
    keys.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, keys);
}

#[test]
fn field_r8_every_option_of_every_kind_has_an_answer() {
    all_are_answered::<FlowOptions>();
    all_are_answered::<DegradeOptions>();
    all_are_answered::<ParamOptions>();
    all_are_answered::<SystemOptions>();
    all_are_answered::<AuthorityOptions>();
}

#[test]
fn field_r8_every_field_of_sentinel_has_an_answer() {
    for (kind, fields, answered, names) in super::sentinel::answers() {
        let ours = match kind {
            "flow" => self::answered::<FlowOptions>(),
            "degrade" => self::answered::<DegradeOptions>(),
            "param" => self::answered::<ParamOptions>(),
            "system" => self::answered::<SystemOptions>(),
            "authority" => self::answered::<AuthorityOptions>(),
            other => panic!("no kind: {other}"),
        };
        for field in fields {
            let own = names.iter().find(|(_ours, theirs)| *theirs == field);
            let own = own.map_or(field, |(ours, _theirs)| *ours);
            let is_answered = answered.contains(&field) || ours.contains(&own);
            assert!(
                is_answered,
                "{kind}: nobody says when {field} has no effect"
            );
        }
    }
}

const FLOW: &str = "[[flow]]\nresource = \"a\"\ncount = 5\n";
const DEGRADE: &str = "[[degrade]]\nresource = \"a\"\ngrade = \"error_count\"\nthreshold = 5\nrecovery_timeout = \"1s\"\n";
const PARAM: &str = "[[param]]\nresource = \"a\"\nindex = 0\ncount = 5\n";
const SYSTEM: &str = "[[system]]\n";
const AUTHORITY: &str = "[[authority]]\nresource = \"a\"\n";

/// The head of a rule, more options, and the one that is warned of.
const IDLE: &[(&str, &str, &str)] = &[
    (FLOW, "mode = \"off\"", "flow[0].mode"),
    (
        FLOW,
        "expires = \"2001-01-01T00:00:00Z\"",
        "flow[0].expires",
    ),
    (
        FLOW,
        "window = \"1s\"\ngrade = \"concurrency\"",
        "flow[0].window",
    ),
    (FLOW, "reference = \"b\"", "flow[0].reference"),
    (
        FLOW,
        "behavior = \"warm_up\"\ngrade = \"concurrency\"",
        "flow[0].behavior",
    ),
    (FLOW, "warm_up_period = \"5s\"", "flow[0].warm_up_period"),
    (FLOW, "cold_factor = 4", "flow[0].cold_factor"),
    (
        FLOW,
        "max_queueing_time = \"5s\"\nbehavior = \"warm_up\"",
        "flow[0].max_queueing_time",
    ),
    (FLOW, "cluster = { flow_id = 7 }", "flow[0].cluster"),
    (
        FLOW,
        "cluster = { flow_id = 7, threshold = \"global\" }",
        "flow[0].cluster",
    ),
    (
        FLOW,
        "cluster = { flow_id = 7, fallback_to_local = false }",
        "flow[0].cluster",
    ),
    (DEGRADE, "mode = \"off\"", "degrade[0].mode"),
    (DEGRADE, "max_rt = \"1s\"", "degrade[0].max_rt"),
    (
        PARAM,
        "window = \"1s\"\ngrade = \"concurrency\"",
        "param[0].window",
    ),
    (
        PARAM,
        "behavior = \"pace\"\ngrade = \"concurrency\"",
        "param[0].behavior",
    ),
    (
        PARAM,
        "max_queueing_time = \"1s\"",
        "param[0].max_queueing_time",
    ),
    (PARAM, "cluster = { flow_id = 7 }", "param[0].cluster"),
    (SYSTEM, "cpu = 1", "system[0].cpu"),
    (SYSTEM, "qps = 20000000", "system[0].qps"),
    (SYSTEM, "concurrency = 4294967295", "system[0].concurrency"),
    (AUTHORITY, "origins = [\"a,b\"]", "authority[0].origins"),
    (AUTHORITY, "origins = [\" a\"]", "authority[0].origins"),
];

#[test]
fn field_r8_what_has_no_effect_is_warned_of() {
    for (kind, more, option) in IDLE {
        assert_eq!(
            warned("a.toml", &format!("{kind}{more}\n")),
            [*option],
            "{more}"
        );
    }
    for (text, option) in [
        (FLOW.replace("\"a\"", "\"report-.*\""), "flow[0].resource"),
        (FLOW.replace('5', "4294967295"), "flow[0].count"),
        (
            DEGRADE.replace("\"a\"", "\"report-.*\""),
            "degrade[0].resource",
        ),
        (PARAM.replace("\"a\"", "\"report-.*\""), "param[0].resource"),
        (PARAM.replace('5', "4294967295"), "param[0].count"),
        (
            AUTHORITY.replace("\"a\"", "\"*\"\norigins = [\"b\"]"),
            "authority[0].resource",
        ),
    ] {
        assert_eq!(warned("a.toml", &text), [option], "{text}");
    }
}

#[test]
fn field_r8_what_has_an_effect_is_not_warned_of() {
    for text in [
        format!("{FLOW}strict = false\nmode = \"observe\"\nexpires = \"30s\"\n"),
        format!(
            "{FLOW}behavior = \"warm_up_pace\"\nwarm_up_period = \"5s\"\ncold_factor = 4\nmax_queueing_time = \"1s\"\n"
        ),
        FLOW.replace("\"a\"", "\"report-.*\"\nregex = true"),
        DEGRADE.replace("\"a\"", "\"*\""),
        format!("{PARAM}behavior = \"pace\"\nmax_queueing_time = \"1s\"\n"),
        format!("{SYSTEM}load = 8\ncpu = 0.9\n"),
        format!("{AUTHORITY}origins = [\"shop\"]\n"),
    ] {
        assert_eq!(warned("a.toml", &text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn field_r8_sentinels_fields_without_an_effect_are_warned_of() {
    let flow = |more: &str| format!("[{{\"resource\":\"a\",\"count\":5,\"grade\":1{more}}}]");
    let none = Vec::<&str>::new();
    for (name, text, options) in [
        // What its dashboard writes with every rule.
        ("flow.json", flow(",\"limitApp\":\"default\",\"strategy\":0,\"refResource\":null,\"controlBehavior\":0,\
            \"warmUpPeriodSec\":10,\"maxQueueingTimeMs\":500,\"clusterMode\":false,\
            \"clusterConfig\":{\"flowId\":null,\"thresholdType\":0,\"fallbackToLocalWhenFail\":true}"), none.clone()),
        ("flow.json", flow(",\"warmUpPeriodSec\":0,\"maxQueueingTimeMs\":0"), none.clone()),
        ("flow.json", flow(",\"warmUpPeriodSec\":30"), vec!["[0].warmUpPeriodSec"]),
        ("flow.json", flow(",\"refResource\":\"b\""), vec!["[0].refResource"]),
        ("flow.json", flow(",\"clusterMode\":true,\"clusterConfig\":{\"flowId\":7,\"thresholdType\":1}"), vec!["[0].clusterConfig"]),
        ("flow.json", flow(",\"clusterConfig\":{\"flowId\":7}"), vec!["[0].clusterConfig"]),
        ("degrade.json", "[{\"resource\":\"a\",\"count\":5,\"grade\":2,\"timeWindow\":5,\"slowRatioThreshold\":1.0,\"limitApp\":\"default\"}]".to_owned(), none.clone()),
        ("degrade.json", "[{\"resource\":\"a\",\"count\":5,\"grade\":2,\"timeWindow\":5,\"slowRatioThreshold\":0.5,\"limitApp\":\"shop\",\"regex\":true}]".to_owned(),
            vec!["[0].limitApp", "[0].regex", "[0].slowRatioThreshold"]),
        ("param.json", "[{\"resource\":\"a\",\"count\":5,\"grade\":0,\"paramIdx\":0,\"burstCount\":9,\"limitApp\":\"default\"}]".to_owned(), vec!["[0].burstCount"]),
        ("system.json", "[{\"qps\":5,\"highestCpuUsage\":1.0,\"resource\":\"a\"}]".to_owned(), vec!["[0].highestCpuUsage", "[0].resource"]),
    ] {
        let mut found = warned(name, &text);
        found.sort();
        assert_eq!(found, options, "{text}");
    }
}
