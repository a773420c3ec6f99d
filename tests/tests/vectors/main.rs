//! Vectors: sequences of events with the verdicts of Sentinel 1.8.9, run through rule loading and the
//! gate on real pages.
//!
//! The files are in `tests/vectors/`, and in `tests/vectors/reckoned/` those whose verdicts follow from the
//! written rules alone. `TIDEGATE_VECTORS` names another folder, whose files are run with Sentinel's quirks
//! alone. Each file gives one line; the first event that differs is shown with both verdicts. A
//! field that nobody reads is a failure, and so is a folder of which no file could be run.

#[cfg(test)]
mod figures;
#[cfg(test)]
mod files;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod script;
#[cfg(test)]
mod world;
