//! The kernel's text files, taken apart: pure functions over bytes, one file for each format.
//!
//! All of them skip lines they do not know, never panic, and say [`Fault`](crate::procfs::NoValue) instead of guessing. A
//! number that does not fit 64 bits is malformed.

pub(crate) mod affinity;
pub(crate) mod cpu_set;
pub(crate) mod hsperfdata;
pub(crate) mod load_average;
pub(crate) mod pressure;
pub(crate) mod proc_stat;
pub(crate) mod quota;
pub(crate) mod sched_stat;
pub(crate) mod sock_diag;
pub(crate) mod task_stat;
