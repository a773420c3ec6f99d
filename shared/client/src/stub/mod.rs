//! The client of systems without an agent: macOS, Windows, and Linux with `--cfg tidegate_stub`. What is built there has
//! the same interface, admits everything and counts that, so that a service for Linux can be written and tested there.

pub(crate) mod client;
pub(crate) mod connect_fault;
pub(crate) mod gate;
pub(crate) mod inner;
pub(crate) mod permit;
pub(crate) mod resource;
pub(crate) mod session;
pub(crate) mod sync;
