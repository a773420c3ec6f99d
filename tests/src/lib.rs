//! Harness: the real agent, real services in processes of their own, and waits with a deadline.
#![forbid(unsafe_code)]

pub mod actor;
pub mod agent;
pub mod by_socket;
pub mod confined;
pub mod generated;
pub mod limit;
pub mod load;
pub mod machine;
pub mod program;
pub mod quiet_host;
pub mod race;
pub mod raw_service;
pub mod reload_state;
pub mod restarts;
pub mod shared_count;
pub mod skip;
pub mod spans;
pub mod ticks;
pub mod until;
pub mod user;
pub mod vandal;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

/// So do those of the client's README.
#[cfg(doctest)]
#[doc = include_str!("../../shared/client/README.md")]
mod readme_of_the_client {}
