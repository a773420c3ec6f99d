//! Scenes: what happens around the service while it is loaded.

mod acting;
mod list;
mod run;
mod setups;

pub(crate) use list::Name;
pub(crate) use run::{Playing, Run, run};

use std::time::Duration;

use crate::figures::Span;
use crate::lab::Shape;
use crate::load::{Phase, Retry, Slow};
use crate::service::Event;

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
    /// What happens while the load runs, in its order.
    pub acts: Vec<Act>,
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
    /// Those of their requests that wait for something downstream.
    pub slow: Slow,
    pub retry: Option<Retry>,
}

/// What runs on the service's CPU beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// A busy loop in a group of its own.
    Neighbour,
    /// A JVM in the service's group that collects its whole heap again and again.
    CollectingJvm,
    /// A thread that goes before all others and takes half of the CPU, as a hypervisor does. The kernel counts it as
    /// other work and not as steal: only a guest sees that.
    Thief,
}

/// Something that happens at a moment of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Act {
    /// From its beginning, seconds.
    pub at_s: f64,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// To the first service.
    Event(Event),
    /// The rules of the agent are other ones from now on; they concern another resource.
    Reload,
}

/// What a scene is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Terms {
    /// Offered load, as times of the capacity.
    pub offered: f64,
    /// Length of the judged part.
    pub length: Duration,
}
