//! `tidegate-bench`, which `tidegate bench` runs.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tidegate_agent::plain;
use tidegate_bench::{BenchReport, Figure, NoFigure, Role, SUBCOMMAND};

/// Counts allocations, so that it can be shown that a decision makes none.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Measures what a decision and a tick cost on this machine
#[derive(Debug, Parser)]
#[command(
    name = "tidegate-bench",
    version,
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    #[command(subcommand)]
    second_process: Option<SecondProcess>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure what the programs in the kernel cost, and nothing else; needs root
    #[arg(long)]
    ebpf: bool,
}

#[derive(Debug, Subcommand)]
enum SecondProcess {
    /// A second process of the bench
    #[command(name = SUBCOMMAND, hide = true)]
    Part { role: Role },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(SecondProcess::Part { role }) = arguments.second_process {
        return end(tidegate_bench::serve(role));
    }
    let report = if arguments.ebpf {
        tidegate_bench::run_ebpf()
    } else {
        tidegate_bench::run(allocations_made)
    };
    let text = if arguments.json {
        plain::json(&report.json().to_string())
    } else {
        plain::lines(&table(&report))
    };
    // Whoever reads it may have seen enough (`| head`): that is no failure.
    let _enough: io::Result<()> = writeln!(io::stdout().lock(), "{text}");
    ExitCode::SUCCESS
}

fn end(done: Result<(), NoFigure>) -> ExitCode {
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    let text = plain::lines(&error.to_string());
    let _nobody: io::Result<()> = writeln!(io::stderr().lock(), "tidegate-bench: {text}");
    ExitCode::FAILURE
}

fn allocations_made() -> Option<u64> {
    let stats = ALLOCATOR.stats();
    let made = stats.allocations.saturating_add(stats.reallocations);
    u64::try_from(made).ok()
}

/// A line for each figure: name, value, how it is measured.
fn table(report: &BenchReport) -> String {
    let mut text = String::new();
    let how = "the clock that a decision reads on this machine";
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{:<28} {:>10}  {how}", "clock", report.clock);
    for Figure { name, how, value } in &report.figures {
        let _written = match value {
            Ok(value) => writeln!(text, "{name:<28} {value:>10.2}  {how}"),
            Err(error) => writeln!(text, "{name:<28} {:>10}  not measured: {error}", "-"),
        };
    }
    text.truncate(text.trim_end().len());
    text
}
