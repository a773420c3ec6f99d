//! What the client shows to the services that link it. A line that goes away or changes breaks them: it takes a new
//! version (the second number, until 1.0) and a line of CHANGELOG.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use crate::source::{self, SourceFile};

const GOLDEN: &str = "tests/tests/architecture/interface.golden";

/// Whether a file is for tests alone, or says again what another one says: `public.rs` of the client's own tests holds
/// the stub to the interface.
fn is_left_out(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.contains("/stub/") || name.ends_with("tests.rs") || name.starts_with("test_")
}

/// Whether a line begins something public.
fn is_public(line: &str) -> bool {
    line.starts_with("pub ") || line.starts_with("impl<") || line.starts_with("impl ")
}

/// Public items, fields and variants of a file, each on a line of its own, and the blocks of `impl` they are in.
fn items(file: &SourceFile) -> Vec<String> {
    let code = file.text.lines().take_while(|line| *line != "mod tests {");
    let mut items = Vec::new();
    let mut begun = String::new();
    let mut in_public_enum = false;
    for line in code {
        let text = line.trim();
        let is_variant = in_public_enum
            && line
                .strip_prefix("    ")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
        if begun.is_empty() && !is_public(text) && !is_variant {
            in_public_enum &= line != "}";
            continue;
        }
        in_public_enum |= text.starts_with("pub enum ");
        if !begun.is_empty() {
            begun.push(' ');
        }
        begun.push_str(text);
        let is_closed = begun.matches('(').count() == begun.matches(')').count();
        let is_field = text.ends_with(',') && is_closed && !begun.contains(" where ");
        if text.ends_with(['{', ';', '}']) || is_field {
            items.push(begun.trim_end_matches(['{', ';', ',', ' ']).to_owned());
            begun.clear();
        }
    }
    // Of the blocks, those that hold something public.
    let is_empty_block = |item: &String| item.starts_with("impl") && !is_trait(item);
    let mut told: Vec<String> = Vec::new();
    for item in items {
        if item.starts_with("impl") && told.last().is_some_and(is_empty_block) {
            told.pop();
        }
        told.push(item);
    }
    if told.last().is_some_and(is_empty_block) {
        told.pop();
    }
    told.retain(|item| !item.contains("pub(crate)"));
    told
}

fn is_trait(block: &str) -> bool {
    block.contains(" for ")
}

/// Whether an item says nothing of what is shown: a trait of a type that nobody outside can name.
fn is_hidden(item: &str, shown: &BTreeSet<String>) -> bool {
    item.starts_with("impl") && is_trait(item) && !words(item).any(|word| shown.contains(word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    words.filter(|word| !word.is_empty())
}

/// Names of the public types and traits.
fn shown(files: &[SourceFile]) -> BTreeSet<String> {
    let lines = files.iter().flat_map(|file| file.text.lines());
    let begins = ["pub struct ", "pub enum ", "pub trait "];
    let names = lines.filter_map(|line| begins.iter().find_map(|begin| line.strip_prefix(begin)));
    names
        .filter_map(|rest| words(rest).next().map(str::to_owned))
        .collect()
}

#[test]
fn field_o16_what_the_client_shows_changes_only_with_its_golden() {
    let mut now = String::new();
    let mut files = source::rust_files(&["shared/client/src"]);
    files.retain(|file| !is_left_out(&file.path));
    let shown = shown(&files);
    for file in &files {
        let mut items = items(file);
        items.retain(|item| !is_hidden(item, &shown));
        if items.is_empty() {
            continue;
        }
        writeln!(now, "# {}", file.path).expect("a string takes all");
        for item in items {
            writeln!(now, "{item}").expect("a string takes all");
        }
    }
    let path = source::root().join(GOLDEN);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &now).expect("the tree is ours");
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        now, before,
        "the interface of the client is another; if that is meant, UPDATE_GOLDEN=1 writes {GOLDEN} anew"
    );
}
