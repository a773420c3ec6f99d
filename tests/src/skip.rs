//! A test that cannot run says so.

use std::process::Command;

/// Says that the calling test did not test, and why. The caller returns after it.
///
/// `tests/run` counts each line `SKIPPED: why` that a passing test printed, and shows it at the end.
#[expect(clippy::print_stderr, reason = "this is the test's report")]
pub fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// A tool of the machine, or `None` after saying that the calling test is skipped.
///
/// `version` is the argument that makes the tool print its version and end.
pub fn tool(name: &str, version: &str) -> Option<Command> {
    let found = Command::new(name)
        .arg(version)
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skip(&format!("{name} is missing; tests/run installs it"));
    }
    found.then(|| Command::new(name))
}
