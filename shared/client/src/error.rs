//! What can go wrong before a decision.

use std::io;

use tidegate_abi::NameFault;

pub use crate::connect_error_kind::ConnectErrorKind;
pub(crate) use crate::connect_fault::ConnectFault;

/// Why there is no connection to an agent.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConnectError(Box<ConnectFault>);

impl ConnectError {
    /// What kind of error it is.
    pub const fn kind(&self) -> ConnectErrorKind {
        self.0.kind()
    }
}

impl From<ConnectFault> for ConnectError {
    fn from(fault: ConnectFault) -> Self {
        Self(Box::new(fault))
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

/// Most listening sockets; the agent watches as many.
pub(crate) const LISTENERS_MAX: usize = 16;

/// Why a listener is not watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// The descriptor is something else.
    #[error("not a listening TCP socket ({0}); give the socket itself, after listen()")]
    Other(io::Error),
    /// There are too many.
    #[error("{} listening sockets are watched already; close some", LISTENERS_MAX)]
    TooMany,
}
