//! What the agent tells of itself and its decisions: one shape for HTTP and for the subcommands.

mod ebpf;
pub mod explain;
mod facts;
pub mod fill;
pub mod rules;
pub mod signal;
pub mod status;
pub mod threads;
mod turned_away;
pub mod warnings;
pub mod why;
