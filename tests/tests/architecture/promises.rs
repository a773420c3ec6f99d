//! Every promise of the README names the test or bench that guards it.

use std::fs;

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
