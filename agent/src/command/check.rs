//! `tidegate check`.

use std::path::{Path, PathBuf};

use super::output::{Failure, say, say_error};
use crate::config::{DEFAULT_PATH, check};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate check                          the installed file, or the defaults without one
  tidegate check ./tidegate.toml --json   {\"ok\":false,\"faults\":[{\"file\",\"line\",...}]}

Exit codes: 0 valid, 2 invalid.")]
pub(super) struct Options {
    /// File to check, with the rules it names
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let installed = Path::new(DEFAULT_PATH);
    let file = match &options.file {
        Some(file) => Some(file.as_path()),
        None => installed.exists().then_some(installed),
    };
    let report = check::check(file);
    if options.json {
        say(report.json().map_err(Failure::of)?);
    } else {
        let found = report.to_string();
        if !found.is_empty() {
            say_error(found.trim_end());
        }
        if report.ok {
            let name = file.map_or("the built-in defaults".into(), Path::to_string_lossy);
            say(format!("{name}: valid"));
        }
    }
    if report.ok {
        Ok(())
    } else {
        Err(Failure::Told(report.exit_code()))
    }
}
