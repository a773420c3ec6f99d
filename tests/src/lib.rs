//! Harness.

pub mod skip;
