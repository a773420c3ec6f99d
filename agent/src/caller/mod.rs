//! Asks a running agent over its sockets, as a service without the shared pages would.

mod gate;
mod http;

use std::io;
use std::path::PathBuf;

pub use gate::GateConnection;
pub use http::{Answer, HttpConnection};

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
