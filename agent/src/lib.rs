//! The agent.
#![forbid(unsafe_code)]

pub mod background;
pub mod calendar;
pub mod caller;
pub mod command;
pub mod config;
pub mod control;
pub mod door;
pub mod ebpf;
pub mod event;
pub mod host;
pub mod journal;
pub mod places;
pub mod plain;
pub mod procfs;
pub mod recording;
pub mod replay;
pub mod report;
pub mod rule;
pub mod rule_source;
pub mod run;
pub mod schema;
pub mod signal;
pub mod telemetry;
pub mod tenant;
pub mod words;
