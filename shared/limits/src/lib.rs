//! Pure decisions: what a limit answers, and what its state is afterwards.
//!
//! Nothing here reads a clock, touches shared memory or allocates. Each step is a function
//!
//! ```text
//! (state word, now_ns, parameters of the rule, request) → (verdict, new state word)
//! ```
//!
//! so that a caller can hold the state in one atomic word and commit with one compare-and-swap:
//!
//! ```text
//! loop {
//!     let word = atomic.load();
//!     let (verdict, next) = step(word, now_ns, ...);
//!     if next == word || atomic.compare_exchange(word, next) { return verdict }
//! }
//! ```
//!
//! A word that was never written (0) is the state before the first request. Any other bit pattern
//! is taken too: it can make an answer wrong, but never panics, wraps a count or loops.
//!
//! Times are ns of one clock that does not go back; a reader that is late by a little (another core
//! was faster) is safe in every step.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod authority;
pub mod borrow;
pub mod breaker;
pub mod healthy_run;
pub mod law;
pub mod number;
pub mod pacing;
pub mod param;
pub mod quirks;
pub mod statistics;
pub mod strict;
pub mod system;
pub mod threshold;
pub mod verdict;
pub mod warm_up;
pub mod window;
