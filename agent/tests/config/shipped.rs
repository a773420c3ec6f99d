//! The shipped files are what the code says.

use std::path::{Path, PathBuf};

use tidegate_agent::config::check::check;
use tidegate_agent::config::schema::source::Source;
use tidegate_agent::config::{Config, shipped};

fn shipped_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config")
}

#[test]
fn the_shipped_file_is_the_defaults() {
    let path = shipped_directory().join("tidegate.toml");
    crate::golden::compare(&path, &shipped::text());
    let source = Source::new("tidegate.toml", shipped::text());
    let loaded = Config::parse(&source).expect("the shipped file has no fault");
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.warnings, []);
}

#[test]
fn the_shipped_file_with_every_example_switched_on_is_valid() {
    let text = shipped::text();
    let switched_on: Vec<&str> = text
        .lines()
        .map(|line| {
            // Options and headers behind a comment sign; prose has no ` = ` and no bracket.
            let option = line.strip_prefix("# ").filter(|rest| {
                rest.starts_with('[') || (rest.contains(" = ") && !rest.contains(". "))
            });
            option.unwrap_or(line)
        })
        .collect();
    let switched_on = switched_on.join("\n");
    let loaded = Config::parse(&Source::new("tidegate.toml", switched_on)).expect("no fault");
    assert_eq!(
        (loaded.config.scopes.len(), loaded.config.tenants.len()),
        (1, 1)
    );
}

#[test]
fn the_sample_rules_are_valid() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("tidegate.toml");
    let rules = shipped_directory()
        .join("rules.d")
        .canonicalize()
        .expect("the samples");
    let text = format!("[rules]\ndir = {:?}\n", rules.display().to_string());
    std::fs::write(&config, text).expect("a file");
    let report = check(Some(&config));
    assert!(report.ok, "{report}");
}
