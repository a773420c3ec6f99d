//! Doors: the ways by which a service reaches the gate.
//!
//! [`Doors::open`] places the sockets, [`Doors::serve`] answers on them until it is dropped. The gate decides;
//! a door only carries the question and the answer.

pub mod gate_socket;
pub mod open_files;
pub mod peer;
pub mod socket_path;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::tenant::Tenant;
use crate::tenant::scope_resolver::ScopeResolver;
use socket_path::Access;

/// How the doors are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the sockets.
    pub directory: PathBuf,
    /// Who may use them.
    pub access: Access,
    /// Most connections to the gate socket.
    pub connections_max: usize,
    /// A connection that sends no hello for this long ends.
    pub hello_deadline: Duration,
}

/// Why the doors could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be placed.
    #[error(transparent)]
    Path(#[from] socket_path::PathError),
}

/// What the doors serve from.
#[derive(Debug)]
pub struct Context {
    /// The pages of the default tenant.
    pub tenant: Arc<Tenant>,
    /// Finds the scope of a process that connects.
    pub scopes: Arc<dyn ScopeResolver>,
}

/// The doors, placed and listening. Nobody is answered before [`Doors::serve`].
#[derive(Debug)]
pub struct Doors {
    gate_socket: gate_socket::GateSocket,
}

impl Doors {
    /// Places the sockets and makes room for their connections. Must run inside the runtime.
    ///
    /// # Errors
    /// Another agent owns the directory, something else lies there, or the system refuses.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        open_files::raise_limit();
        socket_path::make_directory(&settings.directory)?;
        Ok(Self {
            gate_socket: gate_socket::GateSocket::open(settings)?,
        })
    }

    /// Answers on all doors until it is dropped.
    pub async fn serve(self, context: Arc<Context>) {
        self.gate_socket.serve(context).await;
    }
}
