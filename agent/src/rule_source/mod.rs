//! Where rules come from. A new source is a file here and a line in its callers' list.

pub mod check;
pub mod directory;
pub mod last_good;
pub mod look;
pub mod of_config;
mod quoting;
mod still;
mod unread;
pub mod watch;

pub use directory::DirectorySource;
pub use watch::DirectoryWatch;

use crate::rule::RuleSet;
use crate::schema::fault::Fault;

/// Gives the whole rule set of a tenant, again and again.
pub trait RuleSource {
    /// What it is, for messages: a path or an address.
    fn name(&self) -> String;

    /// Reads all rules anew.
    ///
    /// # Errors
    /// Every fault. The caller keeps the last good set.
    fn load(&self) -> Result<RuleSet, Vec<Fault>>;
}
