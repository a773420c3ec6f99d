//! The agent.
#![forbid(unsafe_code)]

pub mod telemetry;
