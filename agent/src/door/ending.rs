//! A process that was told to end by force and is not gone yet. It holds its sockets while the kernel takes apart what
//! it had, for a second or more where probes were attached.

use std::num::NonZero;

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Longest wait for its end.
const WAIT_MAX: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// Flag of a task that ends, in `/proc/PID/stat` (`PF_EXITING` of the kernel).
const EXITING: u32 = 4;
/// SIGKILL in the sets of signals of `/proc/PID/status`.
const KILL: u64 = 1 << 8;

/// No wait.
const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Waits for the end of a process, if it is ending; whether it has ended, now or before.
pub(super) fn wait_for(pid: NonZero<u32>) -> bool {
    let id = i32::try_from(pid.get()).ok();
    let Some(id) = id.and_then(Pid::from_raw) else {
        return false;
    };
    // Before the look, so that what ends is what was looked at.
    let pidfd = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => return errno == Errno::SRCH,
    };
    let wait = if is_ending(id) { WAIT_MAX } else { NO_WAIT };
    let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
    poll(&mut ended, Some(&wait)).is_ok_and(|ready| ready > 0)
}

fn is_ending(pid: Pid) -> bool {
    let Ok(process) = Process::new(pid.as_raw_nonzero().get()) else {
        return false;
    };
    let stat = process.stat();
    let exits = stat.is_ok_and(|stat| stat.flags & EXITING != 0);
    let is_killed = || {
        let status = process.status();
        status.is_ok_and(|status| (status.sigpnd | status.shdpnd) & KILL != 0)
    };
    exits || is_killed()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that waits for its standard input.
    fn waiting() -> (Child, NonZero<u32>) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = NonZero::new(child.id()).unwrap();
        (child, pid)
    }

    #[test]
    fn a_killed_process_is_waited_for_and_a_living_one_is_not() {
        let (mut child, pid) = waiting();
        assert!(!wait_for(pid));
        child.kill().unwrap();
        assert!(wait_for(pid));
        child.wait().unwrap();
        assert!(wait_for(pid), "it is gone");
    }
}
