//! Busy processes.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Processes that want a CPU each, for so long and no longer; none is left when it is dropped.
#[derive(Debug)]
pub struct CpuHogs(Vec<Child>);

impl CpuHogs {
    /// Starts so many.
    ///
    /// # Panics
    /// If there is no room for a process.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start(count: usize, seconds: u32) -> Self {
        let mut timeout = Command::new("timeout");
        let seconds = seconds.to_string();
        let busy = timeout
            .args([seconds.as_str(), "sh", "-c", "while :; do :; done"])
            .stdin(Stdio::null());
        let mut load = Self(Vec::with_capacity(count));
        for _process in 0..count {
            load.0
                .push(busy.spawn().expect("there is room for a process"));
        }
        load
    }

    /// Waits until their time is over.
    pub fn wait(mut self) {
        for child in &mut self.0 {
            // Each ends by itself, and takes its loop with it.
            let _ended = child.wait();
        }
    }
}

impl Drop for CpuHogs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It passes the signal on to its loop. One that was waited for is none any more.
            if let Ok(None) = child.try_wait() {
                let _sent = kill_process(Pid::from_child(child), Signal::TERM);
                let _ended = child.wait();
            }
        }
    }
}
