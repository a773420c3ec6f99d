//! What the kernel's programs and the agent share: the records of the maps, each once.
//!
//! The programs write, the agent reads; groups alone go the other way. Maps are arrays of 64-bit
//! words with a fixed meaning for each word, so that both sides can reach them without a copy.
//! A map is made for one kernel and one agent; nothing of it is kept, so its layout has no version.
#![expect(
    clippy::inline_always,
    reason = "a program in the kernel is one function, which the verifier follows"
)]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "masks and constants keep each number in bounds; a check would cost every scheduler event"
)]

pub mod clock;
pub mod counter;
pub mod group;
pub mod pause;
pub mod runqueue;
pub mod task;
