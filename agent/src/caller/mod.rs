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
    #[error("{}: {error}; is the agent running, and may this user connect? (see --runtime-dir)", path.display())]
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
