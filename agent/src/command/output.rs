//! What a command prints, and how it ends.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the one place where the command line prints"
)]

use std::fmt::Display;
use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Something failed; exit code 1.
    Failed(String),
    /// Wrong usage or an invalid configuration; exit code 2.
    Invalid(String),
    /// The request was refused; exit code 3. What there was to say is said.
    Refused,
}

impl Failure {
    /// A failure with an error's own words.
    pub fn of(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Tells a failure and gives the exit code.
pub(super) fn end(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(text)) => {
            eprintln!("tidegate: {text}");
            ExitCode::from(1)
        }
        Err(Failure::Invalid(text)) => {
            eprintln!("tidegate: {text}");
            ExitCode::from(2)
        }
        Err(Failure::Refused) => ExitCode::from(3),
    }
}

/// Prints a line, or several, to standard output.
pub(super) fn say(text: impl Display) {
    println!("{text}");
}
