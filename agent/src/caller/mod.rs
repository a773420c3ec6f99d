//! Asks a running agent over its sockets, as a service without the shared pages would.

mod gate;
mod http;

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use tidegate_segment::os::way::{TrustedPath, UntrustedPath};

use crate::host::peer::Peer;

pub use gate::GateConnection;
pub use http::{HttpAnswer, HttpConnection};

/// Why the agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// Nobody listens, or not for this user.
    #[error("{}: {error}; {}", path.display(), way_out(error))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// Somebody could have put another socket in the place of the agent's.
    #[error(transparent)]
    Way(#[from] UntrustedPath),
    /// Somebody else than an agent that can be trusted listens there.
    #[error("{}: user {uid} listens there; allowed are root, this user and the owner of the directory: ask as the agent's user, or choose another --runtime-dir", path.display())]
    Peer {
        /// The socket.
        path: PathBuf,
        /// Who listens.
        uid: u32,
    },
    /// The connection broke.
    #[error("the agent's socket: {0}")]
    Broken(#[from] io::Error),
    /// The agent ended the connection.
    #[error("the agent closed the connection; it may have been stopped")]
    Closed,
    /// It did not like what it was asked.
    #[error("the agent answered: {0}")]
    Fault(String),
    /// It answered something that was not asked.
    #[error("the agent's answer makes no sense here: {0}; are both of one version?")]
    Unexpected(String),
}

/// The way to the sockets of a directory, if nobody can have put others there.
fn way(directory: &Path, path: &Path) -> Result<TrustedPath, NoAnswer> {
    TrustedPath::to(directory).map_err(|untrusted| match untrusted.errno() {
        Some(errno) => NoAnswer::Connect {
            path: path.to_owned(),
            error: errno.into(),
        },
        None => NoAnswer::Way(untrusted),
    })
}

/// Makes sure that who listens at a socket can be trusted.
fn trusted(way: &TrustedPath, socket: &impl AsFd, path: &Path) -> Result<(), NoAnswer> {
    let uid = Peer::of(socket)?.uid;
    if way.trusts(uid) {
        return Ok(());
    }
    let path = path.to_owned();
    Err(NoAnswer::Peer { path, uid })
}

/// What to do about a socket that takes no connection.
fn way_out(error: &io::Error) -> &'static str {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the standard library may add kinds of errors"
    )]
    match error.kind() {
        io::ErrorKind::NotFound => {
            "no agent has its sockets there: start one with `tidegate run`, or name the directory of another one \
             with --runtime-dir"
        }
        io::ErrorKind::ConnectionRefused => {
            "no agent listens there any more: start it again with `tidegate run`"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not connect: ask as the agent's user or as a member of the socket's group (socket.group)"
        }
        _ => "is it the agent's socket? --runtime-dir names its directory",
    }
}
