//! Waiting for what other processes do, always with a deadline.

use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};

/// The longest wait for what should come at once, also on a loaded machine.
pub const SOON: Duration = Duration::from_secs(10);

/// How often a state that sends no event is looked at.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// Waits until `look` finds something and returns it with the time that took.
///
/// # Panics
/// If it finds nothing within `limit`; `what` names what was missing.
pub fn found<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> (T, Duration) {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return (found, begin.elapsed());
        }
        assert!(begin.elapsed() <= limit, "{what}: not within {limit:?}");
        pause();
    }
}

/// Waits until `holds` and returns how long that took.
///
/// # Panics
/// If it does not within `limit`.
pub fn holds(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    found(what, limit, || holds().then_some(())).1
}

/// Looks for as long as `during` lasts whether `holds`.
///
/// # Panics
/// If it does not hold once; the moment is in the message.
pub fn throughout(what: &str, during: Duration, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < during {
        let at = begin.elapsed();
        assert!(holds(), "{what}: not after {at:?}");
        pause();
    }
}

fn pause() {
    // Nothing is waited for but the time; a signal only makes it shorter.
    let _waited: Result<usize, rustix::io::Errno> = poll(&mut [], Some(&LOOK));
}
