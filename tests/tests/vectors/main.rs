//! Vectors: sequences of events with the verdicts of Sentinel 1.8.9, run through rule loading and the
//! gate on real pages.
//!
//! The files are in `tests/vectors/`, and in `tests/vectors/reckoned/` those whose verdicts follow from the
//! written rules alone. `TIDEGATE_VECTORS` names another folder, whose files are run with Sentinel's quirks
//! alone. Each file gives one line; the first event that differs is shown with both verdicts. Files that ask a
//! token server, have events of which nothing is known or a clock that steps back are told, counted and not run.
//! A field that nobody reads is a failure, and so is a folder of which no file could be run.
//!
//! In one thing the runner does more than a client: it gives each origin and context its node from the first
//! call, as Sentinel does. A client asks for one when a rule wants it, and its counts begin then.

#[cfg(test)]
mod figures;
#[cfg(test)]
mod files;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod script;
#[cfg(test)]
mod world;
