//! No input makes the readers panic, and every fault stands in the file.

use std::path::Path;

use proptest::prelude::*;
use tidegate_agent::config::Config;
use tidegate_agent::rule::{QuirksOption, RuleSet};
use tidegate_agent::rule_source::form;
use tidegate_agent::schema::fault::Fault;
use tidegate_agent::schema::source::Source;

/// Reads a text as each kind of file; gives all faults.
fn read_all(text: &str) -> Vec<Fault> {
    let config = Source::new("tidegate.toml", text);
    let mut faults = Config::parse(&config).err().unwrap_or_default();
    for name in ["a.toml", "flow.json", "param.json", "x.json"] {
        let read = form::read(Path::new(name), &Source::new(name, text));
        faults.extend(read.faults);
        faults.extend(read.warnings);
        faults.extend(
            RuleSet::build(read.rules, QuirksOption::None)
                .err()
                .unwrap_or_default(),
        );
    }
    faults
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let lines: Vec<&str> = text.split('\n').collect();
    for fault in read_all(text) {
        let Some(point) = fault.place.point else {
            // What is left off of too many.
            continue;
        };
        let line = lines.get(point.line - 1);
        let length = line.map(|line| line.chars().count());
        prop_assert!(
            length.is_some_and(|length| point.column <= length + 1),
            "{fault}"
        );
        prop_assert!(!fault.to_string().contains(char::is_control), "{fault:?}");
    }
    Ok(())
}

/// Pieces of files that go wrong in telling ways when they meet.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "[[flow]]\n",
        "[flow]\n",
        "[cpu]\n",
        "[[scope]]\n",
        "[scope.cpu]\n",
        "[flow.cluster]\n",
        "enter = ",
        "resource = ",
        "count = ",
        "window = ",
        "items = ",
        "regex = true\n",
        "tick = ",
        "nan\n",
        "-1\n",
        "\"1s\"\n",
        "\"(\"\n",
        "1e999\n",
        "[",
        "]",
        "{",
        "}",
        "\"",
        ",",
        ":",
        "=",
        "\n",
        "\\u0000",
        "[{\"resource\":",
        "\"count\":",
        "\"paramIdx\":",
        "\"a\"",
        "null",
        "0.5",
        "99999999999999999999",
        "é",
        "\u{1b}",
        "'''",
        "2026-11-29",
    ];
    prop::sample::select(pieces.map(str::to_owned).to_vec())
}

proptest! {
    // Faults are shown whole; a file of past failures would add nothing.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_order_of_pieces(pieces in prop::collection::vec(piece(), 0..30)) {
        check(&pieces.concat())?;
    }
}

#[test]
fn deep_nesting_is_a_fault() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(2_000), close.repeat(2_000));
        assert!(!read_all(&deep).is_empty());
        let in_rule = format!("[{{\"resource\": \"a\", \"count\": {deep}}}]");
        assert!(!read_all(&in_rule).is_empty());
    }
    let deep = format!("a = {}1{}", "[".repeat(2_000), "]".repeat(2_000));
    assert!(!read_all(&deep).is_empty());
}

#[test]
fn many_faults_are_counted_not_listed() {
    let text = "[[flow]]\ncount = -1\n".repeat(2_000);
    let read = form::read(Path::new("a.toml"), &Source::new("a.toml", text));
    let last = read.faults.last().map(ToString::to_string).unwrap();
    assert_eq!(read.faults.len(), 501);
    assert!(last.contains("3500 more faults"), "{last}");
}
