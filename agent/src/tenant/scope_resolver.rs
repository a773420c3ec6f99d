//! Finds the scope of a process.

use std::fmt::Debug;

/// A scope: its place on the boards, and which of the groups that have had the place one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScopeId {
    /// Index on the board; 0 is the host.
    pub place: u32,
    /// How often a group has left the place before.
    pub generation: u32,
}

impl ScopeId {
    /// The host, which never goes.
    pub const HOST: Self = Self::first_at(0);

    /// The first group at a place.
    pub const fn first_at(place: u32) -> Self {
        Self {
            place,
            generation: 0,
        }
    }

    /// Both numbers in a word.
    pub const fn pack(self) -> u64 {
        (self.generation as u64) << 32 | self.place as u64
    }

    /// The numbers of a word.
    pub const fn unpack(word: u64) -> Self {
        Self {
            place: half(word),
            generation: half(word >> 32),
        }
    }
}

/// The lower half of a word.
const fn half(word: u64) -> u32 {
    let [first, second, third, fourth, ..] = word.to_le_bytes();
    u32::from_le_bytes([first, second, third, fourth])
}

/// Finds the scope of a process that connects.
pub trait ScopeResolver: Send + Sync + Debug {
    /// The scope of the process's own cgroup; where that has none, of the nearest group above it that has one; else
    /// the host. It may block until the next tick, so it is not for each decision.
    fn scope_of(&self, pid: u32) -> ScopeId;

    /// The same without waiting for a tick; `None` where that would be needed.
    fn known_scope_of(&self, pid: u32) -> Option<ScopeId>;

    /// Whether the group of a scope is still there. A load, so it is for each decision.
    fn is_current(&self, scope: ScopeId) -> bool;
}

/// Knows no scope but the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAlone;

impl ScopeResolver for HostAlone {
    fn scope_of(&self, _pid: u32) -> ScopeId {
        ScopeId::HOST
    }

    fn known_scope_of(&self, _pid: u32) -> Option<ScopeId> {
        Some(ScopeId::HOST)
    }

    fn is_current(&self, scope: ScopeId) -> bool {
        scope == ScopeId::HOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_in_a_word_is_the_same_scope() {
        let scope = ScopeId {
            place: 63,
            generation: u32::MAX,
        };
        assert_eq!(ScopeId::unpack(scope.pack()), scope);
        assert_eq!(ScopeId::unpack(0), ScopeId::HOST);
    }
}
