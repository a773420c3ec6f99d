//! Files in a directory of rules that are not read, though somebody may take them for rules.

use std::path::{Path, PathBuf};

use super::form::{file_name, is_rule_file};
use crate::schema::fault::Fault;

/// Files that are named; the rest is only counted.
const NAMED_MAX: usize = 20;

const ALLOWED: &str =
    "*.toml, *.json and data ids such as order-flow-rules, in the directory itself";

/// A warning for each of the files that are not read, in the order of their names.
pub(super) fn warnings(mut paths: Vec<PathBuf>) -> Vec<Fault> {
    paths.retain(|path| may_be_meant(path));
    paths.sort();
    let more = paths.len().saturating_sub(NAMED_MAX);
    let mut warnings: Vec<Fault> = paths
        .iter()
        .take(NAMED_MAX)
        .map(|path| warning(path))
        .collect();
    if let Some(last) = paths.last().filter(|_last| more > 0) {
        let directory = last.parent().unwrap_or(last).display().to_string();
        let value = format!("{more} more files that are not read");
        warnings.push(Fault::of_directory(&directory, value, ALLOWED, ""));
    }
    warnings
}

/// Editors and configuration tools keep files of their own, and directories of versions, under hidden names; what is
/// written for people is no rule.
fn may_be_meant(path: &Path) -> bool {
    let name = file_name(path);
    let lower = name.to_ascii_lowercase();
    if let Some(shown) = name.strip_prefix('.') {
        return is_rule_file(&path.with_file_name(shown)) && !path.is_dir();
    }
    let is_text = path.extension().is_some_and(|end| end == "md");
    !(is_text || lower.starts_with("readme") || lower.starts_with("license"))
}

fn warning(path: &Path) -> Fault {
    let hint = if path.is_dir() {
        "directories are not entered: move its files up, or name it as rules.dir"
    } else if file_name(path).starts_with('.') {
        "hidden files are left alone: rename it without the dot"
    } else {
        "rename it if it is meant; move it away if it is not"
    };
    Fault::of_file(&path.display().to_string(), "not read", ALLOWED, hint)
}
