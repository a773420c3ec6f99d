//! Why there is no agent.

use crate::connect_error_kind::ConnectErrorKind;

/// There never is one.
#[derive(Debug, thiserror::Error)]
#[error("Tidegate has no agent for this system: it runs on Linux")]
pub(crate) struct ConnectFault;

impl ConnectFault {
    /// What kind of error it is to a program.
    pub(crate) const fn kind(&self) -> ConnectErrorKind {
        ConnectErrorKind::NoAgent
    }
}
