//! What services bring to an agent that starts.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::host::peer::Peer;

/// A service that has connected while the agent starts.
#[derive(Debug)]
pub struct Offer {
    /// Who.
    pub peer: Peer,
    /// Board and ledger of the life before, if it hands them back.
    pub files: Option<Arc<[OwnedFd; 2]>>,
}
