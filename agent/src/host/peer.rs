//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};

use crate::places::Holder;

/// The process that connected, as the kernel tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Process id in the agent's namespace; 0 where it cannot be seen.
    pub pid: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Peer {
    /// Asks the kernel (`SO_PEERCRED`).
    ///
    /// # Errors
    /// The socket is not a connected Unix socket.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let credentials = getsockopt(socket, PeerCredentials)?;
        Ok(Self {
            pid: u32::try_from(credentials.pid()).unwrap_or(0),
            uid: credentials.uid(),
            gid: credentials.gid(),
        })
    }

    /// In whose name it takes places.
    pub const fn holder(self) -> Holder {
        Holder {
            uid: self.uid,
            pid: self.pid,
        }
    }
}

/// The peer's pidfd, which no reuse of its pid can confuse; `None` before Linux 6.5.
pub fn pidfd(socket: &impl AsFd) -> Option<OwnedFd> {
    getsockopt(socket, PeerPidfd).ok()
}
