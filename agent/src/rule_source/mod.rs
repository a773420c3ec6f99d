//! Where rules come from.
//!
//! A [`RuleSource`] gives whole sets of rules, again and again; [`Sources`] are those of a configuration, and what each
//! tenant makes of them. A new source is a file here with its row in `of_config`, and a guest in the tests of
//! `conformance`, which every source passes.

pub mod check;
#[cfg(test)]
mod conformance_tests;
pub mod directory;
pub mod form;
pub mod last_good;
pub mod look;
pub mod of_config;
mod quoting;
mod source_set;
mod still;
mod unread;
pub mod watch;

use std::fmt::Debug;
use std::pin::Pin;

pub use directory::DirectorySource;
pub use of_config::Sources;
pub use source_set::SourceSet;
pub use watch::DirectoryWatch;

/// A place that gives rules: always all that it has, never a part or a change.
pub trait RuleSource: Debug + Send + Sync {
    /// What it is, for messages: a path or an address.
    fn name(&self) -> String;

    /// The kind of source, a short word of letters: in status, and in the name of the file of its last good rules.
    fn kind(&self) -> &'static str;

    /// How it is now.
    fn state(&self) -> SourceState;

    /// Reads it once, as it is now, without waiting for anything but the reading.
    fn read(&self) -> SourceSet;

    /// Begins to follow it. What changes from now on is in a later set.
    fn follow(&self) -> Box<dyn SetStream>;
}

/// How a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    /// It is there.
    Present,
    /// It is not there: what it gives is empty, and must not lift rules that are in force.
    Missing,
}

impl SourceState {
    /// The word used in status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
        }
    }
}

/// The sets of a source, one after the other.
pub trait SetStream: Debug + Send {
    /// The next set: at first the one that there is, then one each time that the source has changed. A set may have
    /// faults, and may be equal to the one before. It may be dropped while it waits, and no change is lost by that.
    ///
    /// Run inside a tokio runtime with IO and time enabled.
    fn next(&mut self) -> NextSet<'_>;
}

/// Waits for the next set of a source.
pub type NextSet<'s> = Pin<Box<dyn Future<Output = SourceSet> + Send + 's>>;
