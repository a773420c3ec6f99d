//! `tidegate bench`: runs the program that measures, so that nothing of it is in the agent's.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::output::Failure;

/// The program that measures, in the folder of this one.
const PROGRAM: &str = "tidegate-bench";

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

/// Becomes the program that measures; returns only where it cannot.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| Failure::Failed(format!("where is this program? {error}")))?;
    let program = own.with_file_name(PROGRAM);
    let mut command = Command::new(&program);
    if options.json {
        command.arg("--json");
    }
    if options.ebpf {
        command.arg("--ebpf");
    }
    Err(cannot_run(&program, &command.exec()))
}

fn cannot_run(program: &Path, error: &io::Error) -> Failure {
    let program = program.display();
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::Failed(format!("{program}: {error}"));
    }
    Failure::Failed(format!(
        "{program} is not there: the bench is a program of its own, which `cargo build --release` puts beside \
         this one and a package does not install; build both, and run target/release/tidegate bench"
    ))
}
