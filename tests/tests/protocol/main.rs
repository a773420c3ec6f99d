//! The tables of `shared/PROTOCOL.md` are made from the constants that the code uses.

#![cfg(test)]

mod examples;
mod tables;

use tidegate_tests::generated;

/// Bump `VERSION` when a released layout changes.
#[test]
fn the_protocol_says_what_the_code_does() {
    let mut blocks = tables::blocks();
    blocks.extend(examples::blocks());
    generated::check("shared/PROTOCOL.md", &blocks);
}
