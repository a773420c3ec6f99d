//! Every promise names the tests that check it or the command that measures it, and so does every case of the law.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::runner::{Runner, runner};
use crate::source;

/// The table of promises.
const PROMISES: &str = "docs/promises.md";
/// What was measured last.
const MEASUREMENTS: &str = "docs/measurements.md";
/// What stands in a cell that is empty.
const NOTHING: &str = "—";

/// Commands that measure.
const MEASURES: &[&str] = &[
    "tidegate bench",
    "tidegate bench --ebpf",
    "tidegate-lab --figures full",
    "cargo bench --bench beside",
    "cargo bench --bench client",
    "release/build",
    "release/test",
];

fn read(path: &str) -> String {
    fs::read_to_string(source::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the first table of a document.
fn table(path: &str) -> Vec<Vec<String>> {
    let text = read(path);
    let rows = text.lines().skip_while(|line| !line.starts_with("| "));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<String>> = rows
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(rows.len() > 10, "{path} has {} rows", rows.len());
    rows
}

/// The steps of `tests/run`.
fn steps_of_the_run() -> BTreeSet<String> {
    let run = source::root().join("tests/run");
    let steps = Command::new(run).arg("--steps").output();
    let steps = steps.expect("tests/run tells its steps");
    assert!(steps.status.success(), "{steps:?}");
    let steps = String::from_utf8_lossy(&steps.stdout);
    steps.lines().map(str::to_owned).collect()
}

/// What a cell names in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_promise_names_tests_that_are_run_or_a_command_that_measures() {
    let Some(runner) = runner() else {
        return;
    };
    let steps = steps_of_the_run();
    let with_figures: BTreeSet<String> = table(MEASUREMENTS)
        .into_iter()
        .filter_map(|row| row.into_iter().next())
        .collect();
    for row in table(PROMISES) {
        let [promise, _figure, tests, commands, status] = row.as_slice() else {
            panic!("{PROMISES}: a promise has five columns: {row:?}");
        };
        assert!(
            tests != NOTHING || commands != NOTHING,
            "{PROMISES}, {promise:?}: neither a test nor a command"
        );
        for guard in quoted(tests) {
            assert!(
                steps.contains(guard) || runner.runs(guard),
                "{PROMISES}, {promise:?}: tests/run runs no {guard}; name `path/file.rs`, \
                 `path/file.rs::test_name`, or step `one of tests/run --steps`"
            );
        }
        for command in quoted(commands) {
            assert!(
                MEASURES.contains(&command),
                "{PROMISES}, {promise:?}: {command} measures nothing; there are {MEASURES:?}"
            );
        }
        assert!(
            commands == NOTHING || with_figures.contains(promise),
            "{MEASUREMENTS} has no row {promise:?}"
        );
        assert!(
            ["holds", "**missed**"]
                .iter()
                .any(|word| status.contains(word)),
            "{PROMISES}, {promise:?}: the status is holds, or **missed**, and what else there is to say"
        );
    }
}

/// The tables of what the law is held against.
const CASES: &str = "tests/replay/README.md";
/// Where the guards in them are, beside the root.
const CASES_DIRS: [&str; 2] = ["tests/replay", "shared/limits/tests"];

/// Whether a script is there, or a test is run.
fn guard_exists(runner: &Runner, guard: &str) -> bool {
    if is_script(guard) {
        return source::root().join(guard).exists();
    }
    runner.runs(guard)
}

/// The table of bounds.
const BOUNDS: &str = "docs/bounds.md";

#[test]
fn every_bound_names_the_test_that_holds_it() {
    let Some(runner) = runner() else {
        return;
    };
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
                guard_exists(runner, guard),
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
    let Some(runner) = runner() else {
        return;
    };
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
                places.any(|place| guard_exists(runner, &place)),
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
