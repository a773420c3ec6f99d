//! Pure decisions: what a limit answers, and what its state is afterwards.
//!
//! Nothing here reads a clock, touches shared memory or allocates. Each step is a function
//!
//! ```text
//! (state word, now_ns, numbers of the rule, request) → (verdict, new state word)
//! ```
//!
//! so that a caller can hold the state in one atomic word and commit with one compare-and-swap:
//!
//! ```
//! use tidegate_limits::{pacing::Pacing, verdict::Verdict};
//!
//! let ten_per_second = Pacing::new(10.0, 500_000_000);
//! let atomic = std::cell::Cell::new(0); // the ledger has an atomic word here
//! let now_ns = 7_000_000_000;
//! let verdict = loop {
//!     let word = atomic.get();
//!     let (verdict, next) = ten_per_second.step(word, now_ns, 1);
//!     // `compare_exchange(word, next)`; not needed where nothing changed
//!     if next == word || atomic.replace(next) == word {
//!         break verdict;
//!     }
//! };
//! assert_eq!(verdict, Verdict::Admit { wait_ns: 0 });
//! ```
//!
//! A word that was never written (0) is the state before the first request. Any other bit pattern
//! is taken too: it can make an answer wrong, but never panics, wraps a count or loops. Each module
//! draws its word and says what happens past the maximum of a field.
//!
//! Times are ns of one clock that does not go back; a reader that is late by a little (another core
//! was faster) is safe in every step. Buckets and intervals are aligned to the clock's zero.
//!
//! Where a rule has two words, their order is:
//!
//! | rule | steps |
//! |---|---|
//! | warm up | [`warm_up::WarmUp::fill`] its word, then [`warm_up::WarmUp::limit`] for the node's [`window`] |
//! | warm up and pace | the same fill, then [`pacing::AtRate`] with [`warm_up::WarmUp::rate`] |
//! | breaker, at the end of a call | add to the [`breaker::tally`], then [`breaker::Breaker::complete`]; if it closed, clear the tally |
//! | prioritized | see [`borrow`] |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod authority;
pub mod borrow;
pub mod breaker;
pub mod bulkhead;
pub mod change_budget;
pub mod fairness;
pub mod healthy_run;
pub mod law;
pub mod number;
pub mod pacing;
pub mod param;
pub mod probe_budget;
pub mod quirks;
pub mod second_mean;
pub mod statistics;
pub mod strict;
pub mod system;
pub mod threshold;
pub mod verdict;
pub mod warm_up;
pub mod window;
