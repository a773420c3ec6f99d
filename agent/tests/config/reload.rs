//! A reload tells what changed, so that every unchanged rule keeps its state.

use tidegate_agent::rule::{Fate, QuirksOption, RuleSet};

use super::given::rules;

fn build(text: &str, quirks: QuirksOption) -> RuleSet {
    RuleSet::build(rules("a.toml", text), quirks).unwrap()
}

fn set(text: &str) -> RuleSet {
    build(text, QuirksOption::None)
}

fn flow_text(resource: &str, count: u32, more: &str) -> String {
    format!("[[flow]]\nresource = \"{resource}\"\ncount = {count}\n{more}\n")
}

#[test]
fn a_reload_tells_what_changed() {
    let old = [
        flow_text("same", 1, "id = \"before\""),
        flow_text("recounted", 1, ""),
        flow_text("dropped", 1, ""),
        flow_text("switched", 1, ""),
        flow_text("shaped", 1, ""),
    ];
    let new = [
        flow_text("shaped", 1, "behavior = \"pace\""),
        flow_text("recounted", 2, ""),
        flow_text("switched", 1, "mode = \"observe\""),
        flow_text("same", 1, "id = \"after\""),
    ];
    let diff = set(&new.concat()).diff(&set(&old.concat()));
    assert_eq!(
        diff.fates,
        [
            Fate::New,
            Fate::Retuned(1),
            Fate::Retuned(3),
            Fate::Unchanged(0)
        ]
    );
    assert_eq!(diff.gone, [2, 4]);
    assert!(!diff.is_empty());
    let again = set(&new.concat());
    assert!(again.diff(&set(&new.concat())).is_empty());
}

#[test]
fn a_rule_that_says_the_same_goes_before_one_with_another_limit() {
    let old = set(&[flow_text("a", 1, ""), flow_text("a", 2, "")].concat());
    let new = set(&[flow_text("a", 3, ""), flow_text("a", 1, "")].concat());
    assert_eq!(new.diff(&old).fates, [Fate::Retuned(1), Fate::Unchanged(0)]);
}

#[test]
fn equal_breakers_are_one_unless_sentinel_keeps_them_apart() {
    let breaker = "[[degrade]]\nresource = \"a\"\ngrade = \"error_count\"\nthreshold = 1\n\
                   recovery_timeout = \"1s\"\n";
    let twice = breaker.repeat(2);
    let count = |quirks| build(&twice, quirks).rules().len();
    assert_eq!(count(QuirksOption::None), 1);
    assert_eq!(count(QuirksOption::Sentinel189), 2);
}
