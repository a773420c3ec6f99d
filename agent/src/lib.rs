//! The agent.
#![forbid(unsafe_code)]
