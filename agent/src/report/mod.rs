//! What the agent tells of itself and its decisions: one shape for HTTP and for the subcommands.

pub mod ebpf;
pub mod events;
pub mod explain;
pub mod facts;
pub mod fill;
pub mod rules;
pub mod signal;
pub mod status;
pub mod threads;
mod turned_away;
pub mod verdict;
pub mod warnings;
pub mod why;

use std::borrow::Cow;

/// A word of a bounded list. The agent has them all at hand; who reads a report takes what comes.
pub type ListedWord = Cow<'static, str>;
