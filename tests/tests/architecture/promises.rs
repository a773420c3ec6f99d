//! Every promise of the README names the test or bench that guards it, and so does every case of the law.

use std::fs;
use std::path::Path;

use crate::source;

/// What stands in the column "guarded by" of a promise that nothing guards yet.
const NOT_YET: &str = "not yet guarded";

/// The rows of the promises table: promise, figure, guarded by, last measured.
fn promises() -> Vec<Vec<String>> {
    let readme = fs::read_to_string(source::root().join("README.md")).expect("README.md is there");
    let rows: Vec<Vec<String>> = readme
        .lines()
        .skip_while(|line| !line.starts_with("| promise "))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    assert!(!rows.is_empty(), "README.md has no table of promises");
    rows
}

/// The tables of what the law is held against.
const CASES: &str = "tests/replay/README.md";
/// Where the guards in them are, beside the root.
const CASES_DIRS: [&str; 2] = ["tests/replay", "shared/limits/tests"];

/// Whether `file.rs` or `file.rs::test_name` is there.
fn guard_exists(guard: &str) -> bool {
    let (path, test) = guard.split_once("::").unwrap_or((guard, ""));
    fs::read_to_string(source::root().join(path))
        .is_ok_and(|text| test.is_empty() || text.contains(&format!("fn {test}(")))
}

#[test]
fn every_promise_names_its_guard() {
    for row in promises() {
        let [promise, _figure, guards, _last_measured] = row.as_slice() else {
            panic!("a promise has four columns: {row:?}");
        };
        if guards == NOT_YET {
            continue;
        }
        for guard in guards
            .split(',')
            .map(|guard| guard.trim().trim_matches('`'))
        {
            assert!(
                guard_exists(guard),
                "README.md, {promise:?}: there is no {guard}; name `path/file.rs` or \
                 `path/file.rs::test_name`, or write {NOT_YET:?}"
            );
        }
    }
}

/// The table of bounds.
const BOUNDS: &str = "docs/bounds.md";

#[test]
fn every_bound_names_the_test_that_holds_it() {
    let text = fs::read_to_string(source::root().join(BOUNDS)).expect("the table is there");
    // The table of what a restart loses holds no bounds.
    let lines = text.lines();
    let lines = lines.take_while(|line| *line != "## What a restart cannot keep");
    let rows = lines.filter(|line| line.starts_with("| "));
    let rows: Vec<&str> = rows
        .filter(|row| !row.starts_with("| resource |") && !row.starts_with("| what |"))
        .collect();
    assert!(rows.len() > 15, "{BOUNDS} has {} rows", rows.len());
    for row in rows {
        assert!(guards(row).count() > 0, "{BOUNDS}: nothing holds {row}");
        for guard in guards(row) {
            assert!(
                guard_exists(guard),
                "{BOUNDS}: there is no {guard}; name `path/file.rs::test_name`"
            );
        }
    }
}

fn is_script(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|end| end == "jsonl")
}

/// Files and tests that a line names.
fn guards(line: &str) -> impl Iterator<Item = &str> {
    let named = line.split('`').skip(1).step_by(2);
    named.filter(|name| name.contains(".rs") || is_script(name))
}

#[test]
fn every_case_of_the_law_names_its_guard_and_every_script_is_one() {
    let text = fs::read_to_string(source::root().join(CASES)).expect("the tables are there");
    let is_row = |line: &&str| line.starts_with("| ") && line.contains('`');
    let rows: Vec<&str> = text.lines().filter(is_row).collect();
    assert!(rows.len() > 40, "{CASES} has {} rows", rows.len());
    for row in &rows {
        assert!(guards(row).count() > 0, "{CASES}: nothing guards {row}");
        for guard in guards(row) {
            let places = CASES_DIRS.iter().map(|dir| format!("{dir}/{guard}"));
            let mut places = places.chain([guard.to_owned()]);
            assert!(
                places.any(|place| guard_exists(&place)),
                "{CASES}: there is no {guard}; name a script, or `path/file.rs::test_name`"
            );
        }
    }
    let scripts = fs::read_dir(source::root().join("tests/replay")).expect("it is there");
    for script in scripts {
        let name = script.expect("it can be read").file_name();
        let name = name.to_string_lossy();
        let is_named = rows
            .iter()
            .any(|row| guards(row).any(|guard| guard == name));
        assert!(
            is_named || !is_script(&name),
            "{CASES} does not say what {name} is about"
        );
    }
}
