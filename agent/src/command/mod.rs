//! The command line.

mod argument;
mod bench;
mod check;
mod doctor;
mod enter;
mod events;
mod explain;
mod output;
mod place;
mod replay;
mod run;
#[cfg(test)]
mod screens;
mod since;
mod status;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use nix::sys::signal::{SigSet, Signal};

pub use output::Failure;

const EXAMPLES: &str = "\
Examples:
  tidegate                                   run the agent on this host
  tidegate run --config ./tidegate.toml
  tidegate enter order-create                in another terminal: ask it
  tidegate status
  tidegate explain order-create              why was it refused?

Exit codes: 0 done, 1 failure, 2 wrong usage or invalid configuration, 3 refused.";

/// The version, with the commit where `release/build` built it.
const VERSION: &str = match option_env!("TIDEGATE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Admission control for this host: measures it, and tells its services which requests may start
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version = VERSION,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent in the foreground; the default
    Run(run::Options),
    /// Check a configuration and its rules, and report every fault
    Check(check::Options),
    /// Check the agent and this machine: what needs doing, what cannot be measured and why
    Doctor(doctor::Options),
    /// Show whether anything is wrong, and what the agent measures and decides
    Status(status::Options),
    /// Show what has happened: states, breakers, rules, clients, faults
    Events(events::Options),
    /// Show the rules of a resource, what each refused, and its state
    Explain(explain::Options),
    /// Ask the agent once, as a service would
    Enter(enter::Options),
    /// Show what a configuration would have done with a recording
    Replay(replay::Options),
    /// Measure what a decision costs on this machine
    Bench(bench::Options),
}

/// The command line as a value, for manual pages and completions.
pub fn program() -> clap::Command {
    Arguments::command()
}

/// Where a file may not grow any more (`RLIMIT_FSIZE`), the write shall say so. Without this the kernel ends the
/// process without a word.
fn outlive_file_sizes() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Threads that start later inherit it.
    if let Err(errno) = signals.thread_block() {
        output::say_error(format!(
            "tidegate: a limit on file sizes would end this without a word: {errno}"
        ));
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    outlive_file_sizes();
    let Arguments { command, run } = Arguments::parse();
    let done = match command.unwrap_or(Command::Run(run)) {
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Status(options) => status::run(&options),
        Command::Events(options) => events::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Enter(options) => enter::run(&options),
        Command::Replay(options) => replay::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    output::end(done)
}
