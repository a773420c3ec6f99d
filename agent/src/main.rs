//! The `tidegate` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_agent::command::main()
}
