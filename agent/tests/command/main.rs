//! The `tidegate` binary, as operators and the service manager use it.
#![cfg(test)]

mod agent;
mod doctor;
mod limits;
mod usage;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary to its end.
fn tidegate(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("TIDEGATE_RUNTIME_DIR")
        .output()
        .expect("the binary starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
