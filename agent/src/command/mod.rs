//! The command line.

mod bench;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::{Allocations, Role};

pub use output::Failure;

/// Watches this host and answers its services: may this request go on?
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what a decision costs on this machine
    Bench(bench::Options),
    /// A second process of the bench
    #[command(name = crate::bench::SUBCOMMAND, hide = true)]
    BenchPart { role: Role },
}

/// Runs the command line of this process.
pub fn main(allocations: Allocations) -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Bench(options) => bench::run(&options, allocations),
        Command::BenchPart { role } => crate::bench::serve(role).map_err(Failure::of),
    };
    output::end(done)
}
