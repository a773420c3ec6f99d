//! What a command prints, and how it ends.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::journal::{self, Priority};
use crate::plain;

/// Why a command did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Something failed; exit code 1.
    Failed(String),
    /// Wrong usage or an invalid configuration; exit code 2.
    Invalid(String),
    /// What there was to say is said; this exit code.
    Told(u8),
}

/// Exit code of a request that was refused.
pub(super) const REFUSED: u8 = 3;

impl Failure {
    /// A failure in an error's own words.
    pub fn of(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Tells a failure and gives the exit code.
pub(super) fn end(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(text)) => {
            say_error(format!("tidegate: {text}"));
            ExitCode::from(1)
        }
        Err(Failure::Invalid(text)) => {
            say_error(format!("tidegate: {text}"));
            ExitCode::from(2)
        }
        Err(Failure::Told(code)) => ExitCode::from(code),
    }
}

/// Prints text for people to standard output. Whoever reads it may have seen enough (`| head`): that is no failure.
pub(super) fn say(text: impl Display) {
    let _enough: bool = is_said(text);
}

/// The same for JSON, which programs read and terminals show.
pub(super) fn say_json(text: impl Display) {
    let _enough: bool = is_said_in_json(text);
}

/// Prints like [`say`]; false if nobody reads any more.
pub(super) fn is_said(text: impl Display) -> bool {
    print(&plain::lines(&text.to_string())).is_ok()
}

/// Prints like [`say_json`]; false if nobody reads any more.
pub(super) fn is_said_in_json(text: impl Display) -> bool {
    print(&plain::json(&text.to_string())).is_ok()
}

fn print(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Prints to standard error.
pub(super) fn say_error(text: impl Display) {
    let text = plain::lines(&text.to_string());
    let text = journal::for_stderr(format!("{text}\n"), Priority::Error);
    let _nobody: io::Result<()> = write!(io::stderr().lock(), "{text}");
}
