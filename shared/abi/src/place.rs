//! Where an agent has its sockets: what agent, services and commands look at, in one order.

/// Variable that names the directory of the sockets, to an agent that starts as to whoever looks for one.
pub const VARIABLE: &str = "TIDEGATE_RUNTIME_DIR";

/// The socket for frames.
pub const GATE_SOCKET: &str = "gate.sock";

/// The socket for HTTP.
pub const HTTP_SOCKET: &str = "http.sock";

/// A directory in which an agent may have its sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketDirectory {
    /// That of the machine's agent.
    Fixed(&'static str),
    /// The folder `name` below the absolute path in `variable`.
    Below {
        /// An environment variable.
        variable: &'static str,
        /// The folder.
        name: &'static str,
    },
}

/// The agent of the machine.
pub const SYSTEM: SocketDirectory = SocketDirectory::Fixed("/run/tidegate");

/// One that a user has started.
pub const OWN: SocketDirectory = SocketDirectory::Below {
    variable: "XDG_RUNTIME_DIR",
    name: "tidegate",
};

/// Where an agent is looked for when neither the caller nor [`VARIABLE`] names a directory.
///
/// The first counts in which one answers. The machine's comes first: a variable that a service inherits must not take
/// it away from the machine's limits.
pub const ORDER: [SocketDirectory; 2] = [SYSTEM, OWN];
