//! Harness: the real agent, real services in processes of their own, and waits with a deadline.
#![forbid(unsafe_code)]

pub mod actor;
pub mod agent;
pub mod confined;
pub mod load;
pub mod machine;
pub mod program;
pub mod race;
pub mod shared_count;
pub mod skip;
pub mod spans;
pub mod ticks;
pub mod until;
pub mod user;
pub mod vandal;
