//! Checks a configuration and its rules: what `tidegate check` and a reload run.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::Sources;
use crate::config::{Config, ConfigRequest, LoadedConfig, in_force};
use crate::schema::fault::{Fault, InFile};
use crate::schema::source::shown;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CheckReport {
    /// Whether the agent would take it.
    pub ok: bool,
    /// What must be put right.
    pub faults: Vec<Fault>,
    /// Odd, but taken.
    pub warnings: Vec<Fault>,
}

impl CheckReport {
    /// Exit code of the command: 0, or 2 for an invalid configuration.
    pub fn exit_code(&self) -> u8 {
        if self.ok { 0 } else { 2 }
    }

    /// How many faults and warnings there are, in words.
    pub fn counts(&self) -> String {
        let counted = |many: usize, one: &str| match many {
            1 => format!("1 {one}"),
            _ => format!("{many} {one}s"),
        };
        let errors = counted(self.faults.len(), "error");
        let warnings = counted(self.warnings.len(), "warning");
        format!("{errors}, {warnings}")
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
impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "error: {fault}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

/// Checks a file, or the defaults without one, and the rules of every tenant.
pub fn check(path: Option<&Path>) -> CheckReport {
    given(&ConfigRequest::of(path.map(Path::to_owned)))
}

/// Checks a configuration and the rules of every tenant.
pub fn given(asked: &ConfigRequest) -> CheckReport {
    let mut report = CheckReport::default();
    match asked.load() {
        Ok(LoadedConfig {
            config, warnings, ..
        }) => {
            report.warnings.extend(warnings);
            let file = asked.file.as_deref();
            report.faults.extend(of_machine(&config, file));
            check_rules(&Sources::of(&config), &mut report);
        }
        Err(faults) => {
            report.faults.extend(faults);
            let file = asked.file.as_deref();
            report
                .warnings
                .extend(file.map(Config::warnings_of).unwrap_or_default());
        }
    }
    report.ok = report.faults.is_empty();
    report
}

/// What a sound configuration asks of this machine and the machine has not. It is no part of reading a file: a
/// recording is replayed elsewhere.
pub fn of_machine(config: &Config, file: Option<&Path>) -> Option<Fault> {
    let group = config.socket.group.as_deref()?;
    // Where the groups cannot be read, nobody knows.
    if nix::unistd::Group::from_name(group).ok()?.is_some() {
        return None;
    }
    let file = file?;
    let place = in_force::place_of(file, ["socket", "group"])
        .unwrap_or_else(|| InFile::whole(file.display().to_string()));
    Some(Fault::at(
        place,
        "socket.group",
        format!("{group:?}"),
        "a group of this machine",
        format!(
            "there is none of that name: make it with `groupadd --system {}`",
            shown(group)
        ),
    ))
}

/// Tenants that share a source share what is wrong with it.
fn check_rules(sources: &Sources, report: &mut CheckReport) {
    let sets = sources.read();
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    for tenant in sources.tenants() {
        match tenant.build_alone(tenant.of_all(&sets)) {
            Ok(set) => warnings.extend(set.warnings().iter().cloned()),
            Err(found) => {
                faults.extend(found);
                // What is odd is said beside what is wrong.
                let own = tenant.of_all(&sets);
                warnings.extend(own.flat_map(|set| set.read.warnings.iter().cloned()));
            }
        }
    }
    report.faults.extend(each_once(faults));
    report.warnings.extend(each_once(warnings));
}

/// Each of them once, in their order.
pub fn each_once(faults: Vec<Fault>) -> Vec<Fault> {
    let mut once: Vec<Fault> = Vec::new();
    for fault in faults {
        if !once.contains(&fault) {
            once.push(fault);
        }
    }
    once
}
