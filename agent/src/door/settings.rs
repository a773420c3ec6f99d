//! How the doors are, as the configuration says it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::handed::HandedSockets;
use super::socket_path::Access;
use crate::config::Config;
use crate::host::bounds::HELLO_WITHIN;

/// How the doors are.
#[derive(Debug, Clone)]
pub struct DoorSettings {
    /// Directory of the sockets.
    pub directory: PathBuf,
    /// Sockets that listen already.
    pub handed: HandedSockets,
    /// Who may use them.
    pub access: Access,
    /// A connection that sends no hello for this long ends.
    pub hello_deadline: Duration,
    /// TCP address of the metrics, a loopback one; `None` is off.
    pub metrics_listen: Option<SocketAddr>,
    /// Names by which they may be asked for, see `http.metrics_hosts`.
    pub metrics_hosts: Vec<String>,
}

impl DoorSettings {
    /// The doors of a configuration, with their sockets in a directory.
    pub fn of(config: &Config, directory: PathBuf, handed: HandedSockets) -> Self {
        Self {
            directory,
            handed,
            access: Access {
                group: config.socket.group.clone(),
                mode: config.socket.mode,
            },
            hello_deadline: HELLO_WITHIN,
            metrics_listen: config
                .http
                .metrics_enabled
                .then_some(config.http.metrics_listen),
            metrics_hosts: config.http.metrics_hosts.clone(),
        }
    }
}
