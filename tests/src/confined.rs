//! A process in a control group of its own, for tests on this machine's own kernel.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::Program;
use crate::skip;
use crate::until::SOON;

/// A process in a v1 group of its own; both are gone when dropped.
#[derive(Debug)]
pub struct ConfinedProcess {
    /// Path of the group below the mounts.
    pub cgroup: String,
    /// In the cpu and in the cpuacct hierarchy.
    dirs: [PathBuf; 2],
    child: Child,
}

impl ConfinedProcess {
    /// `None`, after saying so, where the machine has no v1 cpu controller, or this user may not make
    /// groups.
    ///
    /// # Panics
    /// If the command does not start, or may not join the group.
    pub fn start(name: &str, command: &mut Command) -> Option<Self> {
        let name = format!("tidegate-test-{name}-{}", std::process::id());
        let dir = |controller: &str| PathBuf::from(format!("/sys/fs/cgroup/{controller}/{name}"));
        let dirs = [dir("cpu"), dir("cpuacct")];
        if !dirs.iter().all(|dir| fs::create_dir(dir).is_ok()) {
            skip::skip("needs root and cgroup v1 under /sys/fs/cgroup/cpu and cpuacct");
            return None;
        }
        let child = command.stdin(Stdio::null()).spawn();
        let joined = child.and_then(|child| {
            let pid = child.id().to_string();
            let confined = Self {
                cgroup: format!("/{name}"),
                dirs,
                child,
            };
            for dir in &confined.dirs {
                fs::write(dir.join("cgroup.procs"), &pid)?;
            }
            Ok(confined)
        });
        assert!(joined.is_ok(), "{command:?}: {joined:?}");
        joined.ok()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A command that runs a program in the group as well.
    pub fn command(&self, program: Program) -> Command {
        let mut command = Command::new("sh");
        let join = "for dir; do shift; [ \"$dir\" = -- ] && break; echo $$ >\"$dir/cgroup.procs\" || exit 1; done; exec \"$@\"";
        command.args(["-c", join, "sh"]).args(&self.dirs);
        command.arg("--").arg(program.path());
        command
    }

    /// A process that keeps one CPU busy.
    pub fn busy(name: &str) -> Option<Self> {
        Self::start(name, Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    /// Lets other groups have next to nothing of the CPUs that it wants.
    ///
    /// # Panics
    /// If the kernel does not take the weight.
    pub fn outweigh(&self) {
        let [cpu, _cpuacct] = &self.dirs;
        let weight = fs::write(cpu.join("cpu.shares"), "262144");
        assert!(weight.is_ok(), "{weight:?}");
    }

    /// Takes over what runs in another group.
    ///
    /// # Panics
    /// If the kernel does not let it.
    pub fn take_over(&self, other: &Self) {
        for (from, to) in other.dirs.iter().zip(&self.dirs) {
            let pids = fs::read_to_string(from.join("cgroup.procs")).unwrap_or_default();
            for pid in pids.lines() {
                let moved = fs::write(to.join("cgroup.procs"), pid);
                assert!(moved.is_ok(), "{pid}: {moved:?}");
            }
        }
    }

    /// Sets the quota, and lets nothing but the quota hold the group back.
    ///
    /// # Panics
    /// If the kernel does not take the quota.
    pub fn limit(&self, run_us: u32) {
        let [cpu, _cpuacct] = &self.dirs;
        let quota = fs::write(cpu.join("cpu.cfs_quota_us"), run_us.to_string());
        assert!(quota.is_ok(), "{quota:?}");
        self.outweigh();
    }
}

impl ConfinedProcess {
    /// Ends what the process has started, as far as it is in the group.
    fn end_others(&self) {
        let [cpu, _cpuacct] = &self.dirs;
        let begin = Instant::now();
        while begin.elapsed() < SOON {
            let pids = fs::read_to_string(cpu.join("cgroup.procs")).unwrap_or_default();
            let pids = pids
                .lines()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            let alive = pids.filter(|pid| kill_process(*pid, Signal::KILL).is_ok());
            if alive.count() == 0 {
                return;
            }
        }
    }
}

impl Drop for ConfinedProcess {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        self.end_others();
        let removed = self
            .dirs
            .iter()
            .filter(|dir| fs::remove_dir(dir).is_ok())
            .count();
        // A group left behind does no harm, and a failing test should say why it failed.
        let _tidy = ended.is_ok() && removed == self.dirs.len();
    }
}
