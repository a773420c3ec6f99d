//! The threads of a scope, as status and doctor tell them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::control::ScopeSnapshot;
use crate::words::{many, number};

/// Threads of a scope whose names begin alike.
#[derive(Debug, Serialize, Deserialize)]
pub struct ThreadsReport {
    /// What the names begin with.
    name: String,
    /// How many there are.
    threads: u64,
    /// CPUs that they used.
    used_cpus: f64,
    /// Share of the CPU time of all threads of the scope; null where none was used.
    cpu_share: Option<f64>,
    /// Whether they collect garbage; all others do the scope's own business.
    gc: bool,
}

/// The groups that used most CPU, the first one most.
pub fn of(scope: &ScopeSnapshot) -> Vec<ThreadsReport> {
    let groups = scope.threads.iter();
    groups
        .map(|(group, cpu_share)| ThreadsReport {
            name: group.name().replace(char::is_control, "?"),
            threads: group.threads,
            used_cpus: group.used_cpus,
            cpu_share,
            gc: group.is_gc,
        })
        .collect()
}

/// As the reader of threads calls those that it did not tell apart.
const OTHERS: &str = "...";

impl fmt::Display for ThreadsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            threads,
            used_cpus,
            cpu_share,
            gc,
        } = self;
        let name = if name == OTHERS { "all others" } else { name };
        let (threads, cpus) = (many(*threads, "thread"), number(*used_cpus));
        write!(f, "{name:<16} {threads:>12} {cpus:>7} CPUs")?;
        if let Some(share) = cpu_share {
            write!(f, " {:>4.0} %", share * 100.0)?;
        }
        f.write_str(if *gc { "  garbage collection" } else { "" })
    }
}
