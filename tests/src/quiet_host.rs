//! A host that is half idle whatever this machine does meanwhile: the `/proc` that an agent is told to read, beside
//! control groups of which there are none.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

/// How often its counters go on. It is less than the agent's shortest tick, so that each tick finds others.
const STEP: Duration = Duration::from_millis(5);

/// A host of two CPUs that are busy for half of the time; nothing waits for them.
#[derive(Debug)]
pub struct QuietHost {
    dir: TempDir,
    end: Option<Sender<()>>,
    clock: Option<JoinHandle<()>>,
}

impl QuietHost {
    /// Starts its clock.
    ///
    /// # Panics
    /// If there is no room for its files or its thread.
    #[expect(clippy::expect_used, reason = "a test ends here")]
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("there is room for a directory");
        let load = fs::write(dir.path().join("loadavg"), "0.10 0.10 0.10 1/100 1\n");
        load.expect("the directory is ours");
        let stat = File::create(dir.path().join("stat")).expect("the directory is ours");
        tell(&stat, 0).expect("the file is ours");
        let (end, ended) = mpsc::channel::<()>();
        let clock = move || {
            let mut steps = 0;
            while ended.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                steps += 1;
                tell(&stat, steps).expect("the file is ours");
            }
        };
        let clock = std::thread::Builder::new().spawn(clock);
        Self {
            dir,
            end: Some(end),
            clock: Some(clock.expect("there is room for a thread")),
        }
    }

    /// A command for [`Agent::start_logging_by`](crate::agent::Agent::start_logging_by) whose agent reads this host.
    pub fn command(&self) -> Command {
        let mut command = Command::new("sh");
        let run =
            "root=$1; shift; exec \"$@\" --proc-root \"$root\" --cgroup-root \"$root/cgroup\"";
        command.args(["-c", run, "sh"]).arg(self.dir.path());
        command
    }
}

impl Drop for QuietHost {
    fn drop(&mut self) {
        drop(self.end.take());
        // A clock that failed has said so, and the test fails by what it saw.
        let _ended = self.clock.take().map(JoinHandle::join);
    }
}

/// Writes over all of the file in one call, in as many bytes as before: whoever reads finds one state of it.
fn tell(stat: &File, steps: u64) -> io::Result<()> {
    let cpu = |name: &str, times: u64| {
        let half = steps * times;
        format!("{name} {half:012} 0 0 {half:012} 0 0 0 0 0 0\n")
    };
    let text = cpu("cpu ", 2) + &cpu("cpu0", 1) + &cpu("cpu1", 1);
    stat.write_all_at(text.as_bytes(), 0)
}
