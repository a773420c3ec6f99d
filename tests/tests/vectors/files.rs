//! Which files there are, and what each must give.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tidegate_agent::rule::Quirks;

use crate::replay::{Difference, replay};
use crate::script::Script;

/// Where the files are, unless the environment names another folder.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors");

/// Names another folder.
const VARIABLE: &str = "TIDEGATE_VECTORS";

/// Files that differ by default, and the fix in which they do.
const FIXED: &[(&str, &str)] = &[
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
enum Outcome {
    Equal(usize),
    Differs(Difference),
    /// Why it was not run.
    NotRun(&'static str),
}

#[test]
fn sentinels_verdicts_with_its_quirks() {
    let folder = std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    let mut differing = Vec::new();
    let (mut run, mut not_run) = (0, 0);
    for path in files(&folder) {
        let outcome = outcome(&path, Quirks::Sentinel189);
        tell(&path, "sentinel-1.8.9", &outcome);
        match outcome {
            Outcome::Equal(_) => run += 1,
            Outcome::Differs(_) => differing.push(name(&path)),
            Outcome::NotRun(_) => not_run += 1,
        }
    }
    say(&format!(
        "{run} files equal, {} differ, {not_run} not run",
        differing.len()
    ));
    assert!(
        run + differing.len() > 0,
        "no vectors in {}",
        folder.display()
    );
    assert!(differing.is_empty(), "differ: {differing:?}");
}

#[test]
fn the_default_differs_where_a_defect_is_put_right() {
    let mut differing = Vec::new();
    for path in files(Path::new(FOLDER)) {
        let outcome = outcome(&path, Quirks::None);
        tell(&path, "none", &outcome);
        if matches!(outcome, Outcome::Differs(_)) {
            differing.push(name(&path));
        }
    }
    let fixed: Vec<_> = FIXED.iter().map(|(file, _fix)| *file).collect();
    assert_eq!(differing, fixed, "each with its fix: {FIXED:?}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut files: Vec<PathBuf> = paths.filter(is_json).collect();
    files.sort();
    files
}

fn outcome(path: &Path, quirks: Quirks) -> Outcome {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let script = Script::parse(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    if script.asks_a_server() {
        return Outcome::NotRun("it asks a token server");
    }
    if script.clock_steps_back() {
        return Outcome::NotRun("its clock steps back; ours is monotonic");
    }
    replay(&script, quirks).map_or_else(|| Outcome::Equal(script.events.len()), Outcome::Differs)
}

fn tell(path: &Path, mode: &str, outcome: &Outcome) {
    let name = name(path);
    say(&match outcome {
        Outcome::Equal(events) => format!("{name} [{mode}]: {events} events equal"),
        Outcome::NotRun(why) => format!("{name} [{mode}]: not run, {why}"),
        Outcome::Differs(difference) => format!("{name} [{mode}]: {difference}"),
    });
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
