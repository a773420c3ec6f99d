//! The time of the calendar. Decisions and samples take monotonic time; this is for what people write and read, and
//! for the times of files.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Time since 1970; before that it is 0.
pub fn unix_now() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    since_1970(tv_sec, tv_nsec)
}

/// The same of seconds and ns, as files have them.
pub(crate) fn since_1970(seconds: i64, ns: i64) -> Duration {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Duration::new(seconds, u32::try_from(ns).unwrap_or(0))
}
