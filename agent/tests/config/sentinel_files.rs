//! Rule files as people have them load to the rules that are written beside them, or are refused.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tidegate_agent::rule::{QuirksOption, RuleSet};
use tidegate_agent::rule_source::{DirectorySource, RuleSource as _};
use tidegate_agent::schema::fault::Fault;

/// What each folder has beside the shape itself.
const EXPECTED: &str = "expected.toml";
const SAID: &str = "said.golden";

fn shapes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sentinel-files")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Loads files of a folder as the agent does, from a directory of their own.
fn load(
    folder: &Path,
    files: &[&str],
    quirks: QuirksOption,
) -> (Result<RuleSet, Vec<Fault>>, String) {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        std::fs::copy(folder.join(file), directory.path().join(file)).unwrap();
    }
    let loaded = DirectorySource::new(directory.path()).read().build(quirks);
    let mut said = String::new();
    let (faults, warnings) = match &loaded {
        Ok(set) => (&[][..], set.warnings()),
        Err(faults) => (&faults[..], &[][..]),
    };
    for (word, told) in [("error", faults), ("warning", warnings)] {
        for one in told {
            writeln!(said, "{word}: {one}").unwrap();
        }
    }
    let here = format!("{}/", directory.path().display());
    (loaded, said.replace(&here, ""))
}

/// What the rules say, in any order.
fn meaning(set: &RuleSet) -> Vec<String> {
    let rules = set.rules().iter();
    let mut bodies: Vec<String> = rules
        .map(|rule| format!("{:?} {:?}", rule.mode, rule.body))
        .collect();
    bodies.sort();
    bodies
}

#[test]
fn field_r1_every_shape_loads_to_the_rules_beside_it() {
    let mut loaded = 0;
    for name in names(&shapes()).iter().filter(|name| *name != "README.md") {
        let folder = shapes().join(name);
        let all = names(&folder);
        let files = all.iter().map(String::as_str);
        let files: Vec<&str> = files
            .filter(|file| ![EXPECTED, SAID].contains(file))
            .collect();
        let (given, said) = load(&folder, &files, QuirksOption::None);
        if all.contains(EXPECTED) {
            let (expected, _said) = load(&folder, &[EXPECTED], QuirksOption::None);
            let expected = expected.unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
            let given = given.unwrap_or_else(|_faults| panic!("{name}: {said}"));
            assert!(
                given.diff(&expected).is_empty(),
                "{name}: {:#?}",
                (meaning(&given), meaning(&expected))
            );
        } else {
            assert!(given.is_err(), "{name} is refused");
        }
        let golden = folder.join(SAID);
        if said.is_empty() {
            assert!(!golden.exists(), "{name}: nothing is said");
        } else {
            crate::golden::compare(&golden, &said);
        }
        loaded += 1;
    }
    assert!(loaded >= 30, "{loaded} shapes");
}

#[test]
fn every_shape_has_a_row_that_says_where_it_is_met() {
    let readme = std::fs::read_to_string(shapes().join("README.md")).unwrap();
    let rows = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let rows: BTreeSet<String> = rows.map(|(name, _where)| name.to_owned()).collect();
    let mut folders = names(&shapes());
    folders.remove("README.md");
    assert_eq!(rows, folders);
}
