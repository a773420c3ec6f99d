//! What the operating system gives: memory files, seals, mappings, fork detection.

#[cfg(any(test, feature = "testing"))]
pub mod child;
pub mod fork;
pub mod heap;
pub mod inherited;
pub mod listener;
pub mod map;
pub mod memfd;
pub mod sched;
pub mod signals;
pub mod way;
