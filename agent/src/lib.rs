//! The agent.
#![forbid(unsafe_code)]

pub mod signal;
pub mod telemetry;
