//! A figure, or why there is none.

use std::io;

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
    pub(crate) fn kernel(what: &'static str) -> impl Fn(io::Error) -> Self {
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
pub struct BenchReport {
    /// The clock that a decision reads here: `tsc` or `monotonic`.
    pub clock: &'static str,
    /// The figures, in the order they are told.
    pub figures: Vec<Figure>,
}

/// Counts the allocations of this process so far; `None` where nobody counts.
pub type Allocations = fn() -> Option<u64>;

impl BenchReport {
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
