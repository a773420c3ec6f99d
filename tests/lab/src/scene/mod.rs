//! Scenes: what happens around the service while it is loaded.

mod list;
mod run;

pub(crate) use list::Name;
pub(crate) use run::{Playing, Run, run};

use std::time::Duration;

use crate::figures::Span;
use crate::lab::Shape;
use crate::load::{Phase, Retry};

/// A scene at one offered load, ready to be played.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Who asks which service, all of them in one group; the first is judged.
    pub callers: Vec<Callers>,
    pub shape: Shape,
    /// The part of the load that is judged.
    pub judged: Span,
    /// Whether requests that wait for something downstream are judged too.
    pub with_slow: bool,
    /// What runs beside the services.
    pub beside: Option<Beside>,
    /// Rules of the agent.
    pub rules: String,
    /// Share of the capacity that the service has for itself.
    pub share: f64,
}

/// Callers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Callers {
    /// Number of the service that they ask.
    pub service: usize,
    /// What they ask it for.
    pub path: &'static str,
    /// What they ask for when, as times of the service's share of the capacity.
    pub phases: Vec<Phase>,
    /// Share of their requests that wait for something downstream.
    pub slow_share: f64,
    pub retry: Option<Retry>,
}

/// What runs on the service's CPU beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// A busy loop in a group of its own.
    Neighbour,
    /// A JVM in the service's group that collects its whole heap again and again.
    CollectingJvm,
}

/// What a scene is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Terms {
    /// Offered load, as times of the capacity.
    pub offered: f64,
    /// Length of the judged part.
    pub length: Duration,
}
