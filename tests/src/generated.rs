//! Documents with blocks that are made from tables in the code.
//!
//! A block between `<!-- generated: name -->` and `<!-- end -->` holds what a test renders.
//! `UPDATE_GOLDEN=1` writes the blocks anew; text outside of them is left alone.

use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- generated: ";
const BEGIN_CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// A block: its name and what it holds now.
pub type Block = (&'static str, String);

/// The workspace's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A document of the workspace.
///
/// # Panics
/// If it is not there.
pub fn read(path: &str) -> String {
    let text = fs::read_to_string(root().join(path));
    assert!(text.is_ok(), "{path}: {text:?}");
    text.unwrap_or_default()
}

/// Holds each block of a document against what the code says, or writes it so with `UPDATE_GOLDEN=1`.
///
/// # Panics
/// If one differs, one of `blocks` does not stand in the document once, or the document has another.
pub fn check(path: &str, blocks: &[Block]) {
    let before = read(path);
    let after = rendered(path, &before, blocks);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let written = fs::write(root().join(path), after);
        assert!(written.is_ok(), "{path}: {written:?}");
        return;
    }
    let mut lines = before.lines().zip(after.lines());
    let difference = lines.find(|(left, right)| left != right);
    assert!(
        before == after,
        "{path} differs from the code. First difference:\n  \
         file: {}\n  code: {}\n\
         Run this test with UPDATE_GOLDEN=1 and read the difference",
        difference.map_or("(end)", |(left, _)| left),
        difference.map_or("(end)", |(_, right)| right)
    );
}

/// The document with each block as the code says it is now.
fn rendered(path: &str, document: &str, blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut seen = Vec::new();
    let mut rest = document;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, content) = after.split_once(BEGIN_CLOSE).unwrap_or_default();
        let end = content.split_once(END);
        let known = blocks.iter().find(|(known, _)| *known == name);
        assert!(end.is_some(), "{path}: block {name:?} has no {END}");
        assert!(known.is_some(), "{path}: nobody renders block {name:?}");
        let new = known.map_or("", |(_, new)| new.trim_end());
        text.extend([before, BEGIN, name, BEGIN_CLOSE, "\n", new, "\n", END]);
        seen.push(name);
        rest = end.map_or("", |(_old, after)| after);
    }
    for (name, _) in blocks {
        let times = seen.iter().filter(|there| *there == name).count();
        assert_eq!(
            times, 1,
            "{path} needs the block {BEGIN}{name}{BEGIN_CLOSE} {END} once"
        );
    }
    text + rest
}
