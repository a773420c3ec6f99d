//! How a client is doing.

/// A door: a way of this process to the gate, in the words of the agent's `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The process has a seat, and decides on the pages itself.
    Shm,
    /// The agent gave it no seat, and is asked for each decision.
    Socket,
}

impl Transport {
    /// `shm` or `socket`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Socket => "socket",
        }
    }
}

/// How a client is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// Whether there is a connection to an agent now.
    pub connected: bool,
    /// Where decisions are made now; `None` while there has been no agent. A process that lost its
    /// agent goes on at the door it had.
    pub door: Option<Transport>,
    /// Why there is none.
    pub last_error: Option<String>,
    /// Requests that this process admitted because there was nothing to decide on: no agent yet, a
    /// seat that was taken away, or, without a seat, no answer.
    pub open: u64,
    /// Panics of the [`Observer`](crate::Observer).
    pub observer_panics: u64,
}
