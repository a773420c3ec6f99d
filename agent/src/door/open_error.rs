//! Why doors cannot be opened.

use std::io;
use std::net::SocketAddr;

use super::socket_path::PathError;
use crate::config::METRICS_HINT;

/// Why the doors could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A socket could not be placed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The metrics would be readable from other machines.
    #[error("http.metrics_listen = \"{0}\": is not a loopback address; {METRICS_HINT}")]
    Remote(SocketAddr),
    /// Nothing can listen at the address of the metrics.
    #[error(
        "http.metrics_listen = \"{address}\": cannot listen: {error}; choose another port (`--metrics-listen 127.0.0.1:9470`, \
         or the option), or none (`--metrics-listen off`)"
    )]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}
