//! Which scope the process at the other end of a socket is in.
//!
//! It is looked up when the process connects and again from time to time, since a process may move to another group.
//! A pid may be another process's by the time that its group is read, so what is read is believed only while the process
//! that connected has the pid. Where it has it no more, the scope stays what it was found to be last.
//!
//! A process is in no scope but the host before it was looked up, where the agent cannot see it (another pid namespace,
//! a `/proc` that hides it), and once the group of its scope is gone, until the next look.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use tidegate_abi::board::name_hash;
use tidegate_segment::sync::{Ordering, Word};

use super::scope_resolver::{ScopeId, ScopeResolver};
use super::seat_life::{effective_user, lives, process_name, start_time};

/// How long what was found is believed without another look, ns.
const BELIEVED_NS: u64 = 2_000_000_000;

/// What is known of the group of a peer.
#[derive(Debug)]
pub struct PeerScope {
    pid: u32,
    /// When the process began, which names it together with its pid; `None` where it cannot be seen.
    start: Option<u64>,
    /// Hash of its name, which is the name of its service.
    service: OnceLock<u64>,
    found: Word,
    /// When the last look began, monotonic ns.
    looked_ns: Word,
}

impl PeerScope {
    /// A peer that the kernel has named. `pidfd` is the peer's as the socket knows it, where the kernel tells (6.5 and
    /// later); before that, its user must be the same at least.
    pub fn of(pid: u32, uid: u32, pidfd: Option<&OwnedFd>) -> Self {
        let start = if pid == 0 { None } else { start_time(pid) };
        // After its start was read: that is the start of the process that connected, or of none.
        let same = || match pidfd {
            Some(pidfd) => lives(pidfd),
            None => effective_user(pid) == Some(uid),
        };
        Self {
            pid,
            start: start.filter(|_start| same()),
            service: OnceLock::new(),
            found: Word::new(ScopeId::HOST.pack()),
            looked_ns: Word::new(0),
        }
    }

    /// A peer that was found in the first group at a place, and is not looked at again.
    pub fn found_at(place: u32) -> Self {
        let peer = Self::of(0, 0, None);
        let scope = ScopeId::first_at(place);
        peer.found.store(scope.pack(), Ordering::Relaxed);
        peer
    }

    /// The scope that it was found in last.
    pub fn last(&self) -> ScopeId {
        // Relaxed: the scope was published before it was told.
        ScopeId::unpack(self.found.load(Ordering::Relaxed))
    }

    /// The scope that it was found in last, while the group of that is there; else the host.
    pub fn current(&self, scopes: &dyn ScopeResolver) -> ScopeId {
        let last = self.last();
        if scopes.is_current(last) {
            last
        } else {
            ScopeId::HOST
        }
    }

    /// Hash of the name that it had at the first look; 0 before it.
    pub fn service(&self) -> u64 {
        self.service.get().copied().unwrap_or(0)
    }

    /// Whether it is time for a look; true for one caller each time. It is never, where nothing can be seen.
    pub fn takes_look(&self, now_ns: u64) -> bool {
        let before = self.looked_ns.load(Ordering::Relaxed);
        let is_due = before == 0 || now_ns.saturating_sub(before) >= BELIEVED_NS;
        self.start.is_some()
            && is_due
            && self
                .looked_ns
                .exchange_weak(before, now_ns.max(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Looks without waiting; false where that tells nothing, and [`PeerScope::look`] has to wait for a tick.
    pub fn look_at_known(&self, scopes: &dyn ScopeResolver) -> bool {
        match scopes.known_scope_of(self.pid) {
            Some(scope) => {
                self.believe(scope);
                true
            }
            None => false,
        }
    }

    /// Looks again; it may wait for a tick.
    pub fn look(&self, scopes: &dyn ScopeResolver) {
        if self.start.is_some() {
            self.believe(scopes.scope_of(self.pid));
        }
    }

    /// Takes a scope down, if it was read of the process that connected.
    fn believe(&self, scope: ScopeId) {
        if start_time(self.pid) != self.start {
            return;
        }
        let name = || name_hash(process_name(self.pid).unwrap_or_default().as_bytes());
        self.service.get_or_init(name);
        self.found.store(scope.pack(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Every process is in the same group, at a place that a test moves it to.
    #[derive(Debug)]
    struct Everybody {
        place: Word,
        gone: Word,
    }

    impl Everybody {
        const fn at(place: u32) -> Self {
            Self {
                place: Word::new(place as u64),
                gone: Word::new(u64::MAX),
            }
        }
    }

    impl ScopeResolver for Everybody {
        fn scope_of(&self, _pid: u32) -> ScopeId {
            ScopeId::unpack(self.place.load(Ordering::Relaxed))
        }

        fn known_scope_of(&self, pid: u32) -> Option<ScopeId> {
            Some(self.scope_of(pid))
        }

        fn is_current(&self, scope: ScopeId) -> bool {
            scope.pack() != self.gone.load(Ordering::Relaxed)
        }
    }

    fn own_user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn field_o3_a_process_that_moves_is_found_in_its_new_scope_at_the_next_look() {
        let scopes = Everybody::at(3);
        let peer = PeerScope::of(std::process::id(), own_user(), None);
        assert_eq!(peer.current(&scopes), ScopeId::HOST, "before any look");
        assert!(peer.takes_look(1_000));
        assert!(!peer.takes_look(1_001), "one look at a time");
        peer.look(&scopes);
        assert_eq!(peer.current(&scopes).place, 3);
        assert_ne!(peer.service(), 0);
        scopes.place.store(4, Ordering::Relaxed);
        assert_eq!(peer.current(&scopes).place, 3);
        assert!(peer.takes_look(1_000 + BELIEVED_NS));
        assert!(peer.look_at_known(&scopes));
        assert_eq!(peer.current(&scopes).place, 4);
        scopes.gone.store(4, Ordering::Relaxed);
        assert_eq!(peer.current(&scopes), ScopeId::HOST, "its group is gone");
    }

    #[test]
    fn field_o3_a_dead_process_stays_where_it_was_found_last() {
        let scopes = Everybody::at(3);
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let peer = PeerScope::of(child.id(), own_user(), None);
        peer.look(&scopes);
        child.kill().unwrap();
        child.wait().unwrap();
        scopes.place.store(4, Ordering::Relaxed);
        peer.look(&scopes);
        assert_eq!(peer.current(&scopes).place, 3);
    }

    #[test]
    fn field_o3_a_process_that_cannot_be_seen_or_is_not_the_one_that_connected_is_the_hosts() {
        let scopes = Everybody::at(3);
        // Of another pid namespace the kernel tells no pid; the other pid is another user's by now.
        for (pid, uid) in [(0, own_user()), (std::process::id(), own_user() + 1)] {
            let peer = PeerScope::of(pid, uid, None);
            assert!(!peer.takes_look(1_000));
            peer.look(&scopes);
            assert_eq!((peer.last(), peer.service()), (ScopeId::HOST, 0));
        }
    }
}
