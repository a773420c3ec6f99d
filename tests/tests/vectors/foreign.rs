//! Files that cannot be run: each is told by its name and counted, and stops no other.

use tidegate_agent::rule::QuirksOption;

use crate::files::{outcome, run_with_quirks};

const NO_RULES: &str = r#""schema": 1, "rules": []"#;
const FIRST: &str = r#"{"t_ms": 5, "op": "enter", "id": 1, "resource": "r"}"#;
const EARLIER: &str = r#"{"t_ms": 4, "op": "enter", "id": 2, "resource": "r"}"#;
const TOKEN: &str = r#"{"t_ms": 0, "op": "token", "flow_id": 1}"#;
const LEAVE: &str = r#"{"t_ms": 0, "op": "leave", "door": 1}"#;
const PASS: &str = r#"{"id": 1, "pass": true, "wait_ms": 0}"#;
const BREAKER: &str = r#"{"type": "degrade", "resource": "r", "grade": 2, "timeWindow": 1}"#;

fn file(head: &str, events: &[&str], expect: &[&str]) -> String {
    let texts = r#""name": "", "about": "", "source": "", "start_ms": 1000"#;
    let (events, expect) = (events.join(","), expect.join(","));
    format!("{{{head}, {texts}, \"events\": [{events}], \"expect\": [{expect}]}}")
}

/// Name, text, and how the line about it begins.
fn files() -> [(&'static str, String, &'static str); 11] {
    let many = format!("\"schema\": 1, \"rules\": [{}]", [BREAKER; 9].join(","));
    let both = [FIRST, EARLIER];
    [
        ("sound", file(NO_RULES, &[FIRST], &[PASS]), "1 events equal"),
        (
            "token",
            file(NO_RULES, &[TOKEN], &["null"]),
            "not run, it asks a token server",
        ),
        (
            "leave",
            file(NO_RULES, &[LEAVE], &["null"]),
            "not run, it has an event `leave`",
        ),
        (
            "back",
            file(NO_RULES, &both, &[PASS, PASS]),
            "not run, its clock steps back",
        ),
        ("no-json", "no json".to_owned(), "cannot be read, expected"),
        ("empty", String::new(), "cannot be read, EOF"),
        (
            "schema",
            file(r#""schema": 2, "rules": []"#, &[], &[]),
            "cannot be read, schema 2; this runner reads 1",
        ),
        (
            "fewer",
            file(NO_RULES, &[FIRST], &[]),
            "cannot be read, 1 events and 0 expectations",
        ),
        (
            "rules",
            file(r#""schema": 1, "rules": 7"#, &[], &[]),
            "cannot be read, invalid type",
        ),
        (
            "many",
            file(&many, &[], &[]),
            "cannot be read, its rules cannot be loaded",
        ),
        (
            "other",
            file(NO_RULES, &[FIRST], &["null"]),
            "event 0 differs",
        ),
    ]
}

#[test]
fn a_file_that_cannot_be_run_is_told_and_counted_and_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, told) in files() {
        let path = folder.path().join(format!("{name}.json"));
        std::fs::write(&path, text).unwrap();
        let given = outcome(&path, QuirksOption::Sentinel189).to_string();
        assert!(given.starts_with(told), "{name}: {given}");
    }
    let given = run_with_quirks(folder.path()).unwrap_err();
    let failed = [
        "empty", "fewer", "many", "no-json", "other", "rules", "schema",
    ];
    assert_eq!(given, format!("differ or cannot be read: {failed:?}"));
    let none = run_with_quirks(&folder.path().join("none")).unwrap_err();
    assert!(none.contains("none"), "{none}");
}
