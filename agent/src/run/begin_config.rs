//! The configuration that an agent starts with. A fault in its file takes nobody's protection away: the last good one is
//! in force, or the defaults.

use std::io;

use super::rule_keep::RuleKeep;
use super::{Ended, Options};
use crate::config::{Given, Loaded};
use crate::schema::fault::Fault;
use crate::telemetry::reload::Instead;

/// What an agent starts with.
#[derive(Debug)]
pub(super) struct BegunConfig {
    pub(super) loaded: Loaded,
    /// Faults of the file, with what is in force in its place; `None` without a fault.
    pub(super) refused: Option<(Instead, Vec<Fault>)>,
}

/// Loads it.
///
/// # Errors
/// A fault of the file for an agent that must be strict, or a file that is named, is not there, and never was.
pub(super) fn begin(options: &Options, keep: &RuleKeep) -> Result<BegunConfig, Ended> {
    let given = &options.config;
    let begun = match given.load() {
        Ok(loaded) => BegunConfig {
            loaded,
            refused: None,
        },
        Err(faults) if options.strict => return Err(Ended::Invalid(faults)),
        Err(faults) => fall_back(given, keep, faults)?,
    };
    for warning in &begun.loaded.warnings {
        tracing::warn!(event = "rule_warning", "{warning}");
    }
    Ok(begun)
}

fn fall_back(given: &Given, keep: &RuleKeep, faults: Vec<Fault>) -> Result<BegunConfig, Ended> {
    let (loaded, instead) = if let Some(loaded) = kept(given, keep) {
        (loaded, Instead::LastGoodConfiguration)
    } else if is_missing(given) {
        // More likely a wrong path than a fault in a file.
        return Err(Ended::Invalid(faults));
    } else {
        (given.without_file(), Instead::Defaults)
    };
    Ok(BegunConfig {
        loaded,
        refused: Some((instead, faults)),
    })
}

/// The last good configuration of this file, if this version of the agent takes it.
fn kept(given: &Given, keep: &RuleKeep) -> Option<Loaded> {
    let said = |faults: &Vec<Fault>| {
        for fault in faults {
            tracing::warn!(
                event = "last_good_refused",
                "the last good configuration has a fault now: {fault}"
            );
        }
    };
    given
        .of_kept(keep.load_configuration()?)?
        .inspect_err(said)
        .ok()
}

fn is_missing(given: &Given) -> bool {
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    let file = given.file.as_deref();
    file.is_some_and(|file| file.metadata().is_err_and(missing))
}
