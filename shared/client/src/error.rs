//! What can go wrong before a decision.

use std::io;
use std::path::PathBuf;

use tidegate_abi::NameFault;
use tidegate_abi::message::{FaultCode, FrameFault};
use tidegate_segment::board::HeaderFault;
use tidegate_segment::os::memfd::FileError;
use tidegate_segment::os::way::UntrustedPath;

/// Why there is no connection to an agent.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConnectError(Box<ConnectFault>);

/// Kinds of [`ConnectError`], for programs; the error's text is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The socket cannot be reached: most often no agent runs there.
    NoAgent,
    /// Somebody else could have put the socket there, or listens at it.
    Untrusted,
    /// The agent ended the connection.
    Ended,
    /// The agent took the connection and said nothing in time.
    Silent,
    /// The agent answered with a fault, such as that all places are taken.
    TurnedAway,
    /// The agent's messages or pages cannot be understood: upgrade the older of the two.
    Incompatible,
    /// This process has no room for what the client needs: memory, descriptors, a thread.
    Process,
}

impl ConnectError {
    /// What kind of error it is.
    pub const fn kind(&self) -> ConnectErrorKind {
        match *self.0 {
            ConnectFault::Socket { .. } => ConnectErrorKind::NoAgent,
            ConnectFault::Way(_) | ConnectFault::Peer { .. } => ConnectErrorKind::Untrusted,
            ConnectFault::Ended => ConnectErrorKind::Ended,
            ConnectFault::Silent(_) => ConnectErrorKind::Silent,
            ConnectFault::Fault { .. } => ConnectErrorKind::TurnedAway,
            ConnectFault::Frame(_)
            | ConnectFault::Unexpected(_)
            | ConnectFault::Version { .. }
            | ConnectFault::Pages(_)
            | ConnectFault::Header(_) => ConnectErrorKind::Incompatible,
            ConnectFault::Process { .. } => ConnectErrorKind::Process,
        }
    }
}

impl From<ConnectFault> for ConnectError {
    fn from(fault: ConnectFault) -> Self {
        Self(Box::new(fault))
    }
}

/// The same as the parts of the client tell it to each other.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectFault {
    /// The socket cannot be reached: most often no agent runs there.
    #[error("{path}: {call}: {source}; is the agent running with this runtime directory?", path = .path.display())]
    Socket {
        /// The agent's socket.
        path: PathBuf,
        /// What was tried.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody could have put another socket in the place of the agent's.
    #[error(transparent)]
    Way(Box<UntrustedPath>),
    /// Somebody else than an agent that can be trusted listens there.
    #[error(
        "{path}: user {uid} listens there; allowed are root, this user and the owner of the directory: choose another \
         runtime directory", path = .path.display()
    )]
    Peer {
        /// The socket.
        path: PathBuf,
        /// Who listens.
        uid: u32,
    },
    /// The agent ended the connection.
    #[error("the agent ended the connection")]
    Ended,
    /// The agent took the connection and said nothing in time.
    #[error("the agent did not answer within {0} ms")]
    Silent(u128),
    /// The agent answered with a fault.
    #[error("the agent refused the connection: {text} ({code:?})")]
    Fault {
        /// What kind.
        code: FaultCode,
        /// In the agent's words.
        text: Box<str>,
    },
    /// The agent sent bytes that are not a message.
    #[error("the agent sent a frame that cannot be read ({0:?}); upgrade the older of the two")]
    Frame(FrameFault),
    /// The agent sent a message that does not belong here.
    #[error("the agent sent {0}; upgrade the older of the two")]
    Unexpected(&'static str),
    /// The agent speaks another version.
    #[error(
        "the agent speaks version {found}, this program {}; upgrade the older of the two",
        tidegate_abi::VERSION
    )]
    Version {
        /// The agent's version.
        found: u32,
    },
    /// The pages cannot be trusted or mapped.
    #[error(transparent)]
    Pages(#[from] FileError),
    /// The pages are not what they should be.
    #[error(transparent)]
    Header(#[from] HeaderFault),
    /// This process has no room for what the client needs.
    #[error("{call}: {source}")]
    Process {
        /// What was tried.
        call: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl ConnectFault {
    /// Whether there was no agent, or it went away: a new one may come at any moment.
    pub(crate) const fn is_nobody_there(&self) -> bool {
        matches!(self, Self::Socket { .. } | Self::Ended)
    }
}

/// A name that no resource can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource name {name:?} {}", .fault.text())]
pub struct NameError {
    name: String,
    fault: NameFault,
}

impl NameError {
    pub(crate) fn new(name: &str, fault: NameFault) -> Self {
        Self {
            name: name.to_owned(),
            fault,
        }
    }

    /// What is wrong with the name.
    pub const fn fault(&self) -> NameFault {
        self.fault
    }
}

/// Why a listener is not watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// The descriptor is something else.
    #[error("not a listening TCP socket ({0}); give the socket itself, after listen()")]
    Other(io::Error),
    /// There are too many.
    #[error(
        "{} listening sockets are watched already; close some",
        crate::listeners::LISTENERS_MAX
    )]
    TooMany,
}
