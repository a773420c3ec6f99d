//! The load: requests that come when they are due, whether the service keeps up or not.

pub(crate) mod closed;
mod connection;
mod open;
mod retry;
pub(crate) mod schedule;

use std::net::SocketAddr;

pub(crate) use open::generate;
pub(crate) use retry::Retry;
pub(crate) use schedule::Phase;

/// Most connections of the load: beyond them a request finds none, as with a real client's pool.
const CONNECTIONS_MAX: usize = 4000;

/// Requests of one kind of caller to one service.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// The service.
    pub address: SocketAddr,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// What its requests ask for.
    pub path: &'static str,
    /// Which of the requests ask for something slow instead.
    pub slow: Slow,
    /// How many come when.
    pub phases: Vec<Phase>,
    /// What the callers do when they are refused or wait too long.
    pub retry: Option<Retry>,
}

/// Requests that wait for something downstream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slow {
    /// Share of the requests.
    pub share: f64,
    /// What they ask for.
    pub path: &'static str,
}

impl Slow {
    /// No request.
    pub(crate) const NONE: Self = Self {
        share: 0.0,
        path: "/slow",
    };
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With the work done.
    Answered,
    /// With a refusal.
    Refused,
    /// With the word that the work could not be done.
    Failed,
    /// Not before the load ended.
    Unanswered,
    /// It was never sent: all connections were in use.
    NoConnection,
}

/// A request that was due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Which stream it belongs to.
    pub stream: usize,
    /// When it was due, seconds from the beginning of the load.
    pub due_s: f64,
    /// From then to the answer, seconds.
    pub latency_s: f64,
    pub outcome: Outcome,
    /// Whether it asked for something slow.
    pub slow: bool,
}
