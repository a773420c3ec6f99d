//! Why there is no connection to an agent, for the parts of the client.

use std::io;
use std::path::PathBuf;

use tidegate_abi::message::{FaultCode, FrameFault};
use tidegate_segment::board::HeaderFault;
use tidegate_segment::os::memfd::FileError;
use tidegate_segment::os::way::UntrustedPath;

use crate::connect_error_kind::ConnectErrorKind;

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

    /// What kind of error it is to a program.
    pub(crate) const fn kind(&self) -> ConnectErrorKind {
        match self {
            Self::Socket { .. } => ConnectErrorKind::NoAgent,
            Self::Way(_) | Self::Peer { .. } => ConnectErrorKind::Untrusted,
            Self::Ended => ConnectErrorKind::Ended,
            Self::Silent(_) => ConnectErrorKind::Silent,
            Self::Fault { .. } => ConnectErrorKind::TurnedAway,
            Self::Frame(_)
            | Self::Unexpected(_)
            | Self::Version { .. }
            | Self::Pages(_)
            | Self::Header(_) => ConnectErrorKind::Incompatible,
            Self::Process { .. } => ConnectErrorKind::Process,
        }
    }
}
