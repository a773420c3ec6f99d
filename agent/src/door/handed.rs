//! Sockets that listen before the agent runs: the service manager makes them, hands them over by the names of their
//! doors, and keeps them while the agent is away. Who connects meanwhile waits.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, getsockname};
use tidegate_segment::os::way::TrustedPath;

use super::DOORS;
use super::socket_path::{self, Access, Owner};

/// Sockets that were handed over.
#[derive(Debug, Clone, Default)]
pub struct HandedSockets {
    sockets: Arc<Mutex<Vec<(String, OwnedFd)>>>,
    taken: Arc<Mutex<Vec<&'static str>>>,
}

/// Why a socket that was handed over is not used.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error("it cannot be looked at: {0}")]
    Unknown(#[from] Errno),
    #[error("it is no listening Unix socket of the type that this door has")]
    OtherKind,
    #[error(
        "it does not listen at {0}: another --runtime-dir needs another ListenStream= or ListenSequentialPacket="
    )]
    Elsewhere(String),
    #[error("its file is not there any more: restart the socket unit")]
    Deleted,
}

impl HandedSockets {
    /// Those of what was handed over that have the name of a door; the others come back.
    pub fn of(all: Vec<(String, OwnedFd)>) -> (Self, Vec<(String, OwnedFd)>) {
        let is_door = |name: &str| DOORS.iter().any(|door| door.file_name == name);
        let (sockets, others) = all.into_iter().partition(|(name, _own)| is_door(name));
        let handed = Self {
            sockets: Arc::new(Mutex::new(sockets)),
            taken: Arc::default(),
        };
        (handed, others)
    }

    /// The socket of a door, if one was handed over that is right. What is wrong with another one is told.
    pub(super) fn take(
        &self,
        (way, name): (&TrustedPath, &'static str),
        kind: SocketType,
        access: &Access,
    ) -> Option<OwnedFd> {
        let path = way.path().join(name);
        let mut sockets = self.sockets.lock();
        while let Some(place) = sockets.iter().position(|(of, _own)| of == name) {
            let (_name, socket) = sockets.swap_remove(place);
            match check(&socket, &path, kind) {
                Ok(()) => {
                    open_to(way, name, access);
                    self.taken.lock().push(name);
                    return Some(socket);
                }
                Err(why) => {
                    tracing::error!(event = "handed_socket_refused", socket = name, %why, "the socket of the socket unit is not used, the agent makes its own");
                }
            }
        }
        None
    }

    /// Whether the service manager has the socket of that name, so that its file is not the agent's to remove.
    pub fn has_taken(&self, name: &str) -> bool {
        self.taken.lock().contains(&name)
    }
}

fn check(socket: &OwnedFd, path: &Path, kind: SocketType) -> Result<(), NotTaken> {
    let is_listening = match socket_domain(socket) {
        Ok(AddressFamily::UNIX) => socket_type(socket)? == kind && socket_acceptconn(socket)?,
        Ok(_) | Err(Errno::NOTSOCK) => false,
        Err(errno) => return Err(errno.into()),
    };
    if !is_listening {
        return Err(NotTaken::OtherKind);
    }
    let address = SocketAddrUnix::try_from(getsockname(socket)?)?;
    let expected = SocketAddrUnix::new(path)?;
    if address.path_bytes() != expected.path_bytes() {
        return Err(NotTaken::Elsewhere(path.display().to_string()));
    }
    // One that was deleted listens where nobody finds it.
    match socket_path::owner(path, kind) {
        Ok(Some(Owner::Process(_) | Owner::Hidden | Owner::Busy)) => {}
        Ok(None | Some(Owner::OtherKind)) | Err(_) => return Err(NotTaken::Deleted),
    }
    // Its maker leaves it blocking; the runtime must not wait in a call.
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}

/// Gives it to those whom the configuration lets in.
fn open_to(way: &TrustedPath, name: &str, access: &Access) {
    if let Err(error) = socket_path::open_again(way, name, access) {
        tracing::warn!(
            event = "handed_socket_access",
            %error,
            "the socket keeps the group and mode of its socket unit (SocketGroup=, SocketMode=)"
        );
    }
}

#[cfg(test)]
mod tests;
