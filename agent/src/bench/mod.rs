//! What a decision costs on this machine, measured through the same pages, gate and doors that
//! services use.
//!
//! Every figure is the median of several runs; one that cannot be measured here says why. Those of one thread
//! are of moments in which it had its core to itself: see `own_core`.

mod child;
mod cpus;
mod crowd;
mod decision;
mod door;
mod ebpf;
mod echo;
mod own_core;
mod pages;
mod publish;
mod rules;
mod service;
mod share;
mod tick;
mod timing;

use std::io;

pub use child::{Role, SUBCOMMAND, serve};
pub use crowd::Crowd;

/// Why a figure could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum NoFigure {
    /// The kernel refused something.
    #[error("{what}: {error}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// The pages could not be made or mapped.
    #[error(transparent)]
    File(#[from] tidegate_segment::os::memfd::FileError),
    /// The pages are not what they should be.
    #[error(transparent)]
    Header(#[from] tidegate_segment::board::HeaderFault),
    /// No slot for a resource.
    #[error(transparent)]
    Slot(#[from] tidegate_segment::board::RuleFault),
    /// Something went another way than it must for the figure to mean anything.
    #[error("{0}")]
    Wrong(String),
}

impl NoFigure {
    fn kernel(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Kernel { what, error }
    }
}

/// One figure. The unit is the end of its name.
#[derive(Debug)]
pub struct Figure {
    /// Name, as in the JSON object.
    pub name: &'static str,
    /// How it is measured, in a few words.
    pub how: &'static str,
    /// The value.
    pub value: Result<f64, NoFigure>,
}

/// All figures of one run.
#[derive(Debug)]
pub struct Report {
    /// The clock that a decision reads here: `tsc` or `monotonic`.
    pub clock: &'static str,
    /// The figures, in the order they are told.
    pub figures: Vec<Figure>,
}

/// Counts the allocations of this process so far; `None` where nobody counts.
pub type Allocations = fn() -> Option<u64>;

/// Measures everything; takes about half a minute, and some minutes where the cores are hardly ever free.
pub fn run(allocations: Allocations) -> Report {
    let clocks = timing::Clocks::find();
    own_core::look_around();
    let mut figures = own_core::twice_if_mistaken(|| {
        let mut figures = decision::figures(&clocks, allocations);
        figures.extend(rules::figures(&clocks));
        figures
    });
    figures.extend(share::figures(&clocks));
    figures.extend(publish::figures(&clocks));
    figures.push(echo::figure());
    figures.extend(door::figures());
    figures.extend(tick::figures(allocations));
    Report {
        clock: clocks.name(),
        figures,
    }
}

/// Measures what programs in the kernel cost; takes some seconds and needs root.
pub fn run_ebpf() -> Report {
    Report {
        clock: timing::Clocks::find().name(),
        figures: ebpf::figures(),
    }
}

impl Report {
    /// The report as one JSON object; a figure that was not measured is `null`, with the reason
    /// under `not_measured`.
    pub fn json(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        let mut reasons = serde_json::Map::new();
        object.insert("clock".to_owned(), self.clock.into());
        for Figure { name, value, .. } in &self.figures {
            match value {
                Ok(value) => {
                    let rounded = (value * 100.0).round() / 100.0;
                    object.insert((*name).to_owned(), rounded.into());
                }
                Err(error) => {
                    object.insert((*name).to_owned(), serde_json::Value::Null);
                    reasons.insert((*name).to_owned(), error.to_string().into());
                }
            }
        }
        object.insert("not_measured".to_owned(), reasons.into());
        object.into()
    }
}
