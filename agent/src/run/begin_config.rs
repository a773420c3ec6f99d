//! The configuration that an agent starts with. A fault in its file takes nobody's protection away: the last good one is
//! in force, or the defaults.

use std::io;

use super::rule_keep::RuleKeep;
use super::{RunEnd, RunOptions};
use crate::config::{ConfigRequest, LoadedConfig};
use crate::schema::fault::Fault;
use crate::telemetry::reload::Instead;

/// What an agent starts with.
#[derive(Debug)]
pub(super) struct BegunConfig {
    pub(super) loaded: LoadedConfig,
    /// Faults of the file, with what is in force in its place; `None` without a fault.
    pub(super) refused: Option<(Instead, Vec<Fault>)>,
}

/// Loads it.
///
/// # Errors
/// A fault of the file for an agent that must be strict, or a file that is named, is not there, and never was.
pub(super) fn begin(options: &RunOptions, keep: &RuleKeep) -> Result<Box<BegunConfig>, RunEnd> {
    let given = &options.config;
    let begun = match given.load() {
        Ok(loaded) => BegunConfig {
            loaded,
            refused: None,
        },
        Err(faults) if options.strict => return Err(RunEnd::Invalid(faults)),
        Err(faults) => fall_back(given, keep, faults)?,
    };
    for warning in &begun.loaded.warnings {
        tracing::warn!(event = "rule_warning", "{warning}");
    }
    Ok(Box::new(begun))
}

fn fall_back(
    given: &ConfigRequest,
    keep: &RuleKeep,
    faults: Vec<Fault>,
) -> Result<BegunConfig, RunEnd> {
    let (loaded, instead) = if let Some(loaded) = kept(given, keep) {
        (loaded, Instead::LastGoodConfiguration)
    } else if is_missing(given) {
        // More likely a wrong path than a fault in a file.
        return Err(RunEnd::Invalid(faults));
    } else {
        (given.without_file(), Instead::Defaults)
    };
    Ok(BegunConfig {
        loaded,
        refused: Some((instead, faults)),
    })
}

/// The last good configuration of this file, if this version of the agent takes it.
fn kept(given: &ConfigRequest, keep: &RuleKeep) -> Option<LoadedConfig> {
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

fn is_missing(given: &ConfigRequest) -> bool {
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    let file = given.file.as_deref();
    file.is_some_and(|file| file.metadata().is_err_and(missing))
}
