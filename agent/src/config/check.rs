//! Checks a configuration and its rules: what `tidegate check` and a reload run.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::schema::fault::Fault;
use super::{Config, Loaded};
use crate::rule_source::{DirectorySource, RuleSource as _};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Whether the agent would take it.
    pub ok: bool,
    /// What must be put right.
    pub faults: Vec<Fault>,
    /// Odd, but taken.
    pub warnings: Vec<Fault>,
}

impl Report {
    /// Exit code of the command: 0, or 2 for an invalid configuration.
    pub fn exit_code(&self) -> u8 {
        if self.ok { 0 } else { 2 }
    }

    /// One JSON object on one line.
    ///
    /// # Errors
    /// None in practice: every field is text or a number.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// One line for each fault and warning.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "{warning} (warning)")?;
        }
        Ok(())
    }
}

/// Checks a file, or the defaults without one, and the rules of every tenant.
pub fn check(path: Option<&Path>) -> Report {
    let mut report = Report::default();
    match Config::load(path) {
        Ok(Loaded { config, warnings }) => {
            report.warnings.extend(warnings);
            for source in config.rule_sources() {
                check_rules(&source, &mut report);
            }
        }
        Err(faults) => report.faults.extend(faults),
    }
    report.ok = report.faults.is_empty();
    report
}

fn check_rules(source: &DirectorySource, report: &mut Report) {
    match source.load() {
        Ok(set) => report.warnings.extend(set.warnings().iter().cloned()),
        Err(faults) => report.faults.extend(faults),
    }
}
