//! The mapped pages and the gate that decides on them.
//!
//! A tenant has one pair of pages: the [`board`], which the agent alone writes, and the [`ledger`],
//! which the agent and the tenant's services write. The [`gate`] decides on a pair, in the service
//! or in the agent. This is the one package of user space with `unsafe`: it is fenced into [`page`],
//! [`os`], [`clock`] and `near`, and everything above them is safe code over atomic words.
#![deny(unsafe_code)]
#![expect(
    clippy::inline_always,
    reason = "the way of a decision is one function to the machine: a fifth fewer instructions"
)]

pub mod board;
pub mod clock;
pub mod gate;
pub mod lane;
pub mod ledger;
mod near;
#[cfg(not(loom))]
pub mod os;
pub mod page;
#[cfg(not(loom))]
pub mod published;
pub mod sync;

#[cfg(test)]
#[cfg(loom)]
mod loom_tests;
