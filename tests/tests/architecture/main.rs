//! Holds what ARCHITECTURE.md says about packages and sources, so that a slip fails at once.
//!
//! Each file begins with the lists it checks against. A change to the design is a change of a list
//! and of ARCHITECTURE.md, in one commit.

#![cfg(test)]

mod circles;
mod events;
mod interface;
mod names;
mod packages;
mod packed;
mod promises;
mod rooms;
mod rows;
mod runner;
mod source;
mod sources;
mod texts;
