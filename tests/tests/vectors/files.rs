//! Which files there are, and what each must give.

use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::json;
use tidegate_agent::rule::QuirksOption;

use crate::replay::{Difference, replay};
use crate::script::Script;
use crate::world::unread;

/// Where the files are, unless the environment names another folder.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors");

/// Files whose verdicts were reckoned from the written rules, for fields that the others leave out.
const RECKONED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/reckoned");

/// Names another folder.
const VARIABLE: &str = "TIDEGATE_VECTORS";

/// Files that differ by default, and the fix in which they do.
const FIXED: &[(&str, &str)] = &[
    (
        "authority-white",
        "blanks around the origins of a list do not count",
    ),
    ("degrade-halfopen-stuck", "B2: a probe has a lease"),
    (
        "flow-priority-occupy",
        "A9: a borrowed pass is counted as any other, when it is let in; only a figure differs",
    ),
    (
        "flow-priority-skips-later",
        "A8, A9: a borrowed pass passes the later rules and counts on every node",
    ),
    (
        "flow-random-shaped-1",
        "A4: warm up with pacing works in ns",
    ),
    ("param-ratelimiter", "P6: the longest wait is allowed"),
];

/// What became of a file.
pub(crate) enum Outcome {
    Equal(usize),
    Differs(Difference),
    /// Why it was not run.
    NotRun(String),
    /// What is wrong with it.
    Bad(String),
}

#[test]
fn sentinels_verdicts_with_its_quirks() -> Result<(), String> {
    run_with_quirks(&std::env::var_os(VARIABLE).map_or_else(|| FOLDER.into(), PathBuf::from))
}

#[test]
fn verdicts_reckoned_from_the_rules_as_they_are_written() -> Result<(), String> {
    run_with_quirks(Path::new(RECKONED))
}

/// Runs every file of a folder, also those after one that differs.
pub(crate) fn run_with_quirks(folder: &Path) -> Result<(), String> {
    let (mut equal, mut not_run, mut failed) = (0, 0, Vec::new());
    for path in files(folder)? {
        let outcome = outcome(&path, QuirksOption::Sentinel189);
        tell(&path, "sentinel-1.8.9", &outcome);
        match outcome {
            Outcome::Equal(_) => equal += 1,
            Outcome::NotRun(_) => not_run += 1,
            Outcome::Differs(_) | Outcome::Bad(_) => failed.push(name(&path)),
        }
    }
    let failures = failed.len();
    say(&format!(
        "{equal} files equal, {failures} differ or cannot be read, {not_run} not run"
    ));
    if !failed.is_empty() {
        return Err(format!("differ or cannot be read: {failed:?}"));
    }
    if equal == 0 {
        return Err(format!("no vector could be run in {}", folder.display()));
    }
    Ok(())
}

#[test]
fn the_default_differs_where_a_defect_is_put_right() {
    let mut differing = Vec::new();
    for path in files(Path::new(FOLDER)).unwrap() {
        let outcome = outcome(&path, QuirksOption::None);
        tell(&path, "none", &outcome);
        if matches!(outcome, Outcome::Differs(_) | Outcome::Bad(_)) {
            differing.push(name(&path));
        }
    }
    let fixed: Vec<_> = FIXED.iter().map(|(file, _fix)| *file).collect();
    assert_eq!(differing, fixed, "each with its fix: {FIXED:?}");
}

#[test]
fn calls_of_a_value_are_counted_after_a_wait_and_held_to_their_limit_by_default() {
    // With the quirks the fourth caller is let in beside the third, as the file expects.
    let path = Path::new(RECKONED).join("param-thread-after-wait.json");
    let Outcome::Differs(difference) = outcome(&path, QuirksOption::None) else {
        panic!("the default holds the value to one call");
    };
    let refused =
        json!({"id": 4, "pass": false, "blocked_by": "param", "rule": 0, "wait_ms": 1996.0});
    assert_eq!((difference.event, &difference.given), (4, &refused));
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut files = paths.map_err(unreadable)?;
    files.retain(is_json);
    files.sort();
    Ok(files)
}

pub(crate) fn outcome(path: &Path, quirks: QuirksOption) -> Outcome {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    match text.and_then(|text| Script::parse(&text)) {
        Ok(script) => outcome_of(&script, quirks),
        Err(fault) => Outcome::Bad(fault),
    }
}

fn outcome_of(script: &Script, quirks: QuirksOption) -> Outcome {
    if let Some(why) = script.foreign() {
        return Outcome::NotRun(why);
    }
    let unread: Vec<String> = script.rule_lists().flat_map(unread).collect();
    if !unread.is_empty() {
        return Outcome::Bad(format!("fields of rules that are not read: {unread:?}"));
    }
    // The files after one that breaks the runner are run, too.
    let run = catch_unwind(AssertUnwindSafe(|| replay(script, quirks)));
    match run.unwrap_or_else(|_panic| Err("it breaks the runner, as told above".to_owned())) {
        Ok(None) => Outcome::Equal(script.events.len()),
        Ok(Some(difference)) => Outcome::Differs(difference),
        Err(fault) => Outcome::Bad(fault),
    }
}

fn tell(path: &Path, mode: &str, outcome: &Outcome) {
    let name = name(path);
    say(&format!("{name} [{mode}]: {outcome}"));
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(events) => write!(f, "{events} events equal"),
            Self::NotRun(why) => write!(f, "not run, {why}"),
            Self::Bad(fault) => write!(f, "cannot be read, {fault}"),
            Self::Differs(difference) => write!(f, "{difference}"),
        }
    }
}

fn name(path: &Path) -> String {
    let stem = path.file_stem().expect("a file has a name");
    stem.to_string_lossy().into_owned()
}

/// Past the test runner's capture: the lines are wanted for files that pass, too.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").expect("standard output is open");
}
