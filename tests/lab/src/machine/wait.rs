//! Waiting: always for something, always with a deadline.

use std::time::{Duration, Instant};

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;

/// How often a state that sends no event is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `look` finds something; `None` if it does not within `limit`.
pub(crate) fn found<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begin.elapsed() >= limit {
            return found;
        }
        pass(LOOK);
    }
}

/// Lets time pass: a slow downstream, or the pace of a thread that looks at something.
pub(crate) fn pass(time: Duration) {
    let mut left = Timespec::try_from(time).ok();
    while let Some(time) = left {
        left = match nanosleep(&time) {
            NanosleepRelativeResult::Interrupted(rest) => Some(rest),
            NanosleepRelativeResult::Ok | NanosleepRelativeResult::Err(_) => None,
        };
    }
}
