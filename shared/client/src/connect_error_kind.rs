//! Kinds of errors, for programs.

/// Kinds of [`ConnectError`](crate::ConnectError), for programs; the error's text is for people.
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
