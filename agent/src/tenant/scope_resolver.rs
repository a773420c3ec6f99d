//! Finds the scope of a process.

use std::fmt::Debug;

/// Finds the scope of a process that connects.
pub trait ScopeResolver: Send + Sync + Debug {
    /// Index on the board of the scope of the process's own cgroup; 0, the host, where it has none
    /// or cannot be seen. It may block until the next tick, and runs when a process connects, not on
    /// each decision.
    fn scope_of(&self, pid: u32) -> u32;
}

/// Knows no scope but the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAlone;

impl ScopeResolver for HostAlone {
    fn scope_of(&self, _pid: u32) -> u32 {
        0
    }
}
