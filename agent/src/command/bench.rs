//! `tidegate bench`.

use std::fmt::Write as _;

use super::output::{Failure, say, say_json};
use crate::bench::{self, Allocations, Figure, Report};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate bench                            a table; takes half a minute or more
  tidegate bench --json > before.json
  sudo tidegate bench --ebpf                what the programs in the kernel cost

Figures of a busy machine are those of a busy machine: look at the load first.")]
pub(super) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure what the programs in the kernel cost, and nothing else; needs root
    #[arg(long)]
    ebpf: bool,
}

pub(super) fn run(options: &Options, allocations: Allocations) -> Result<(), Failure> {
    let report = if options.ebpf {
        bench::run_ebpf()
    } else {
        bench::run(allocations)
    };
    if options.json {
        say_json(report.json());
    } else {
        say(table(&report).map_err(Failure::of)?);
    }
    Ok(())
}

/// A line for each figure: name, value, how it is measured.
fn table(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let how = "the clock that a decision reads on this machine";
    writeln!(text, "{:<28} {:>10}  {how}", "clock", report.clock)?;
    for Figure { name, how, value } in &report.figures {
        match value {
            Ok(value) => writeln!(text, "{name:<28} {value:>10.2}  {how}")?,
            Err(error) => writeln!(text, "{name:<28} {:>10}  not measured: {error}", "-")?,
        }
    }
    Ok(text.trim_end().to_owned())
}
