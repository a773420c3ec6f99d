//! Every bound of the doors, in one place: how much there is of each thing that a caller can take, and the share of
//! one user and one process. `docs/bounds.md` has them all, with the test that holds each.

use std::sync::Arc;
use std::time::Duration;

use crate::places::{PlaceBound, Places};
use crate::tenant::scope_users::ScopeUsers;

/// Most connections to the gate socket, where enough files may be open.
pub const GATE_CONNECTIONS: usize = 4096;

/// Most connections to the HTTP socket, where enough files may be open. One costs some 30 KiB when its head is as long
/// as it may be, so these are fewer than those of the gate socket.
pub const HTTP_CONNECTIONS: usize = 1024;

/// Longest head of a request over HTTP, bytes: request line and headers. It is also what is read of a body at a time.
pub const HEAD_BYTES: usize = 16 * 1024;

/// Longest body of a request that is read, bytes.
pub const BODY_BYTES: usize = 64 * 1024;

/// Bodies of requests that are held at a time, bytes of all together.
pub const BODIES_BYTES: usize = 4 * 1024 * 1024;

/// How long a body may take to come.
pub const BODY_WITHIN: Duration = Duration::from_secs(10);

/// What is read and thrown away of a body that is not wanted, bytes, so that its sender hears the answer.
pub const DRAINED_BYTES: usize = 1024 * 1024;

/// How long a body that is not wanted may take to come.
pub const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// Answers over HTTP that are not sent yet, bytes of all together. One alone may be longer.
pub const ANSWERS_BYTES: usize = 16 * 1024 * 1024;

/// Requests for reports over HTTP that wait for their turn, of all users together. A user's line moves 64 places a second.
pub const REPORTS: usize = 128;

/// Permits that the agent holds for callers over sockets, of all doors and tenants together.
pub const PERMITS: usize = 32_768;

/// Requests over the gate socket that wait for their turn, of all connections together.
pub const TURNS: usize = 8192;

/// Listening sockets that services show to the agent, of all connections together.
pub const LISTENERS: usize = 4096;

/// Most listeners that one connection may show.
pub const LISTENERS_OF_CONNECTION: usize = 16;

/// Connections over a bound that are told why at a time. More are closed without a word.
pub const TOLD_AT_A_TIME: usize = 64;

/// How long one of them may take to hear it.
pub const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// A connection that sends no hello for this long ends.
pub const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// A user has at most one in this many of what there is.
const OF_USER: usize = 2;

/// A process has at most one in this many.
const OF_PROCESS: usize = 4;

/// Everything that callers take of the agent, whichever door they come by.
#[derive(Debug)]
pub struct Bounds {
    /// Connections to the gate socket.
    pub gate_connections: Arc<Places>,
    /// Connections to the HTTP socket.
    pub http_connections: Arc<Places>,
    /// Bytes of bodies.
    pub bodies: Arc<Places>,
    /// Bytes of answers.
    pub answers: Arc<Places>,
    /// Requests for reports that wait for their turn.
    pub reports: Arc<Places>,
    /// Permits.
    pub permits: Arc<Places>,
    /// Requests that wait for their turn.
    pub turns: Arc<Places>,
    /// Listening sockets that services show.
    pub listeners: Arc<Places>,
    /// Connections that are told why they are not served.
    pub told: Arc<Places>,
    /// What users hold of the limits of scopes.
    pub scope_users: Arc<ScopeUsers>,
}

impl Bounds {
    /// With room for so many connections to each socket, and no more than the doors have.
    pub fn new(connections_max: usize) -> Self {
        let connections = |what, most: usize| Places::new(what, shares(most.min(connections_max)));
        Self {
            gate_connections: connections("connections to gate.sock", GATE_CONNECTIONS),
            http_connections: connections("connections to http.sock", HTTP_CONNECTIONS),
            bodies: Places::new("bytes of requests", shares(BODIES_BYTES)),
            answers: Places::new("bytes of answers", shares(ANSWERS_BYTES)),
            reports: Places::new("reports that wait for their turn", shares(REPORTS)),
            permits: Places::new("permits", PlaceBound::parts(PERMITS, 2, 2)),
            turns: Places::new("requests that wait for their turn", shares(TURNS)),
            listeners: Places::new("listeners", PlaceBound::parts(LISTENERS, OF_USER, 16)),
            told: Places::new("connections turned away", shares(TOLD_AT_A_TIME)),
            scope_users: Arc::default(),
        }
    }

    /// All of which there is a number of places.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Places>> {
        [
            &self.gate_connections,
            &self.http_connections,
            &self.bodies,
            &self.answers,
            &self.reports,
            &self.permits,
            &self.turns,
            &self.listeners,
            &self.told,
        ]
        .into_iter()
    }
}

fn shares(all: usize) -> PlaceBound {
    PlaceBound::parts(all, OF_USER, OF_PROCESS)
}
