//! The tables of `shared/PROTOCOL.md` are made from the constants that the code uses.
//!
//! A block between `<!-- generated: name -->` and `<!-- end -->` holds what this test renders.
//! `UPDATE_GOLDEN=1` writes the blocks anew; text outside of them is left alone.

#![cfg(test)]

mod examples;
mod tables;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- generated: ";
const BEGIN_CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Every block: its name and what it holds now.
fn blocks() -> Vec<(&'static str, String)> {
    let mut blocks = tables::blocks();
    blocks.extend(examples::blocks());
    blocks
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/PROTOCOL.md")
}

fn document() -> String {
    fs::read_to_string(path()).expect("shared/PROTOCOL.md is there")
}

/// Name and old content of each block of the document, and the text around them.
struct Document<'d> {
    parts: Vec<(&'d str, &'d str, &'d str)>,
    rest: &'d str,
}

fn split(document: &str) -> Document<'_> {
    let mut parts = Vec::new();
    let mut rest = document;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after
            .split_once(BEGIN_CLOSE)
            .expect("the begin of a block is one comment");
        let (content, after) = after
            .split_once(END)
            .unwrap_or_else(|| panic!("block {name:?} has no {END}"));
        parts.push((before, name, content));
        rest = after;
    }
    Document { parts, rest }
}

/// The document with each block as the code says it is now.
fn rendered(document: &str) -> String {
    let blocks = blocks();
    let Document { parts, rest } = split(document);
    let mut text = String::new();
    for (before, name, _old) in parts {
        let (_, content) = blocks
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("PROTOCOL.md: nobody renders the block {name:?}"));
        let content = content.trim_end();
        write!(text, "{before}{BEGIN}{name}{BEGIN_CLOSE}\n{content}\n{END}")
            .expect("a string grows");
    }
    text + rest
}

#[test]
fn the_protocol_says_what_the_code_does() {
    let before = document();
    let after = rendered(&before);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path(), after).expect("PROTOCOL.md can be written");
        return;
    }
    let lines = before.lines().zip(after.lines());
    let difference = lines.into_iter().find(|(left, right)| left != right);
    assert!(
        before == after,
        "shared/PROTOCOL.md differs from the code. First difference:\n  \
         file: {}\n  code: {}\n\
         Run this test with UPDATE_GOLDEN=1, read the difference, \
         and bump VERSION when a released layout changes",
        difference.map_or("(end)", |(left, _)| left),
        difference.map_or("(end)", |(_, right)| right)
    );
}

#[test]
fn every_table_stands_in_the_protocol_once() {
    let document = document();
    let Document { parts, .. } = split(&document);
    for (name, _) in blocks() {
        let times = parts.iter().filter(|(_, there, _)| *there == name).count();
        assert_eq!(
            times, 1,
            "PROTOCOL.md needs the block {BEGIN}{name}{BEGIN_CLOSE}"
        );
    }
}
