//! How the doors are, as the configuration says it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::open_files;
use super::socket_path::Access;
use crate::config::Config;

/// Most connections to each socket, where enough files may be open.
const CONNECTIONS_MAX: usize = 4096;

/// A connection that sends no hello for this long ends.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

/// How the doors are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the sockets.
    pub directory: PathBuf,
    /// Who may use them.
    pub access: Access,
    /// Most connections to each of the two sockets; a user other than root has half of them at most.
    pub connections_max: usize,
    /// A connection that sends no hello for this long ends.
    pub hello_deadline: Duration,
    /// TCP address of the metrics, a loopback one; `None` is off.
    pub metrics_listen: Option<SocketAddr>,
}

impl Settings {
    /// The doors of a configuration, with their sockets in a directory.
    pub fn of(config: &Config, directory: PathBuf) -> Self {
        Self {
            directory,
            access: Access {
                group: config.socket.group.clone(),
                mode: config.socket.mode,
            },
            connections_max: open_files::connections(CONNECTIONS_MAX),
            hello_deadline: HELLO_DEADLINE,
            metrics_listen: config
                .http
                .metrics_enabled
                .then_some(config.http.metrics_listen),
        }
    }
}
