//! `tidegate check`.

mod scopes;

use std::path::{Path, PathBuf};

use super::output::{Failure, say, say_error, say_json};
use super::place::Surroundings;
use crate::config::ConfigRequest;
use crate::procfs::Roots;
use crate::rule_source::check;
use crate::schema::fault::Fault;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate check                          the installed file, or the defaults without one
  tidegate check --show                   every option in force, and who set it
  tidegate check ./tidegate.toml --json   {\"ok\":false,\"faults\":[{\"file\",\"line\",...}]}

Exit codes: 0 valid, 2 invalid.")]
pub(super) struct Options {
    /// Configuration file to check, with the rules it names
    #[arg(conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of rules to check; overrides the file
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print every option with the value that is in force, and the file and line that set it
    #[arg(long, conflicts_with = "json")]
    show: bool,
}

/// Prints what is in force, and from where.
fn show(given: &ConfigRequest) -> Result<(), Failure> {
    let faults = |faults: Vec<Fault>| {
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::Invalid(said.join("\n"))
    };
    let loaded = given.load().map_err(faults)?;
    let text = loaded.config.with_origins(given.file.as_deref());
    say(text.map_err(faults)?.trim_end());
    Ok(())
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let file = options.file.as_ref().or(options.config.as_ref());
    let given = Surroundings::here().config(file.cloned(), options.rules_dir.clone());
    let mut report = check::given(&given);
    if let (true, Ok(loaded)) = (report.ok, given.load()) {
        let here = scopes::warnings(&loaded.config, given.file.as_deref(), Roots::default());
        report.warnings.extend(here);
    }
    if options.json {
        say_json(report.json().map_err(Failure::of)?);
    } else {
        let found = report.to_string();
        if !found.is_empty() {
            say_error(found.trim_end());
        }
        let file = given.file.as_deref();
        let name = file.map_or("the built-in defaults".into(), Path::to_string_lossy);
        let counts = report.counts();
        if options.show && report.ok {
            show(&given)?;
        } else if report.ok {
            let warned = if report.warnings.is_empty() {
                String::new()
            } else {
                format!(" ({counts})")
            };
            say(format!("{name}: valid{warned}"));
        } else {
            say_error(format!("{name}: not valid ({counts})"));
        }
    }
    if report.ok {
        Ok(())
    } else {
        Err(Failure::Told(report.exit_code()))
    }
}
