//! `/proc/PID/status`, as far as it says how a process is called where it runs.

use super::{lines, number, words};

/// The pid of a process in its own pid namespace: the last of the line `NSpid`.
pub(crate) fn innermost_pid(status: &[u8]) -> Option<u64> {
    let line = lines(status).find(|line| line.starts_with(b"NSpid:"))?;
    words(line).last().and_then(number)
}
