//! What an agent was started with and has read since, for reports.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

/// Where an agent has what from.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Directory of the sockets.
    pub directory: PathBuf,
    /// The configuration; `None` are the defaults.
    pub config_file: Option<PathBuf>,
    /// Directory of the rules of all.
    pub rules_directory: PathBuf,
    /// Rules in force, of all tenants.
    pub rules: usize,
    /// When they were read.
    pub rules_read: Option<Instant>,
    /// The sources of rules, as each was when it was read last.
    pub sources: Vec<SourceFacts>,
    /// Where metrics are served over TCP.
    pub metrics_listen: Option<SocketAddr>,
    /// A socket that is not where it was made.
    pub missing_socket: Option<&'static str>,
}

/// A source of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFacts {
    /// A path or an address.
    pub name: String,
    /// Word for its kind.
    pub kind: &'static str,
    /// Word for how it is.
    pub state: &'static str,
    /// Version of the set that it gave last.
    pub version: u64,
    /// Faults of that set.
    pub faults: usize,
}
