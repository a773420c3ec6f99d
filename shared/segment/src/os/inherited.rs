//! Descriptors that whoever started this process has opened for it.
#![expect(
    unsafe_code,
    reason = "a number of a descriptor becomes the descriptor's owner"
)]

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first number that is not one of the three standard streams.
const FIRST: RawFd = 3;

/// Whether they were taken: each may have one owner.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the descriptors that were open under these numbers when the process began, in their order.
///
/// The caller has the numbers from the environment, as `LISTEN_FDS` names them. The second call takes none; numbers of
/// the standard streams, and such that come twice, are left out.
pub fn take<T>(named: impl IntoIterator<Item = (RawFd, T)>) -> Vec<(OwnedFd, T)> {
    // Relaxed: the word stands for itself.
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let mut seen = Vec::new();
    let mut taken = Vec::new();
    for (number, name) in named {
        if number < FIRST || seen.contains(&number) {
            continue;
        }
        seen.push(number);
        // SAFETY: the number was given to this process by whoever started it, so nothing in it owns that; each number
        // is taken once, here, and this code runs once.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        taken.push((descriptor, name));
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};

    use super::*;

    #[test]
    fn descriptors_are_taken_once() {
        let number = std::fs::File::open("/dev/null").unwrap().into_raw_fd();
        let taken = take([(0, "standard input"), (number, "a"), (number, "b")]);
        let names: Vec<_> = taken
            .iter()
            .map(|(own, name)| (own.as_raw_fd(), *name))
            .collect();
        assert_eq!(names, [(number, "a")]);
        assert!(take([(number, "a")]).is_empty());
    }
}
