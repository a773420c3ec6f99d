//! Control groups of the lab's processes (cgroup v1), so that the agent sees each service as a scope
//! of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};

use super::wait;

const ROOT: &str = "/sys/fs/cgroup";
const CONTROLLERS: [&str; 3] = ["cpu", "cpuacct", "cpuset"];
/// First part of the names of all groups of the lab; the process id follows.
const PREFIX: &str = "tidegate-lab-";
/// Weight of the groups: a hundred times that of others, so that what else the machine does disturbs
/// the measurement little. Among themselves the groups of the lab are equal.
const WEIGHT: &str = "102400";
/// A period of the CPU quota, µs.
const PERIOD_US: u32 = 100_000;
/// Most time of a second that processes of real-time scheduling get, µs.
const REAL_TIME_US: &str = "600000";
/// Of the lab itself, which tries whether it may ask for that.
const LAB_REAL_TIME_US: &str = "50000";
/// The kernel lets go of a group some time after its last process was waited for.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A group in each of the three hierarchies. Its processes must have ended before it is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    name: String,
}

impl Group {
    /// Makes a group that may use one CPU.
    ///
    /// # Errors
    /// No root, or no cgroup v1 on this machine.
    pub(crate) fn make(purpose: &str, cpu: usize) -> io::Result<Self> {
        let name = format!("{PREFIX}{}-{purpose}", std::process::id());
        let group = Self { name };
        for dir in group.dirs() {
            if !dir.exists() {
                fs::create_dir(&dir)?;
            }
        }
        let [weight, _cpuacct, cpuset] = group.dirs();
        fs::write(weight.join("cpu.shares"), WEIGHT)?;
        fs::write(cpuset.join("cpuset.cpus"), cpu.to_string())?;
        let memory = fs::read_to_string(Path::new(ROOT).join("cpuset/cpuset.mems"))?;
        fs::write(cpuset.join("cpuset.mems"), memory.trim())?;
        Ok(group)
    }

    /// Sets its quota, in CPUs.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub(crate) fn limit(&self, cpus: f64) -> io::Result<()> {
        let [cpu, ..] = self.dirs();
        let quota_us = tidegate_limits::number::whole(cpus * f64::from(PERIOD_US));
        fs::write(cpu.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(cpu.join("cpu.cfs_quota_us"), quota_us.to_string())
    }

    /// Lets its processes ask for real-time scheduling, where the kernel divides that among groups.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub(crate) fn allow_real_time(&self) -> io::Result<()> {
        self.let_real_time(REAL_TIME_US)
    }

    fn let_real_time(&self, us_a_second: &str) -> io::Result<()> {
        let [cpu, ..] = self.dirs();
        let runtime = cpu.join("cpu.rt_runtime_us");
        if runtime.exists() {
            fs::write(runtime, us_a_second)?;
        }
        Ok(())
    }

    /// Its path below the mounts, as the agent names it.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Its folders.
    pub(crate) fn dirs(&self) -> [PathBuf; 3] {
        CONTROLLERS.map(|controller| Path::new(ROOT).join(controller).join(&self.name))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in self.dirs() {
            // One that stays is taken away by the next run of the lab.
            let _tidy = wait::found(GONE_WITHIN, || fs::remove_dir(&dir).ok());
        }
    }
}

/// The group of the lab itself; the lab goes back to where it was when this is dropped.
#[derive(Debug)]
pub(crate) struct LoadGroup {
    _group: Group,
    before: Vec<PathBuf>,
}

impl LoadGroup {
    /// Moves the calling process into a new group on one CPU.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub(crate) fn enter(cpu: usize) -> io::Result<Self> {
        let before = memberships()?;
        let group = Group::make("load", cpu)?;
        group.let_real_time(LAB_REAL_TIME_US)?;
        join(&group.dirs())?;
        Ok(Self {
            _group: group,
            before,
        })
    }
}

impl Drop for LoadGroup {
    fn drop(&mut self) {
        // If it cannot go back, its group stays until the next run of the lab.
        let _back: io::Result<()> = join(&self.before);
    }
}

/// The folders of the groups that the calling process is in.
fn memberships() -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let of = |controller: &str| {
        let marker = format!(":{controller}:/");
        let line = text.lines().find_map(|line| line.split_once(&marker));
        let (_hierarchy, path) = line?;
        Some(Path::new(ROOT).join(controller).join(path))
    };
    Ok(CONTROLLERS
        .iter()
        .filter_map(|controller| of(controller))
        .collect())
}

/// Puts the calling process into a group by its folders.
///
/// # Errors
/// It may not join.
pub(crate) fn join(dirs: &[PathBuf]) -> io::Result<()> {
    for dir in dirs {
        // 0 is the writer itself.
        fs::write(dir.join("cgroup.procs"), "0")?;
    }
    Ok(())
}

/// Takes away what an earlier run left behind that could not tidy up.
pub(crate) fn sweep() {
    for controller in CONTROLLERS {
        let entries = fs::read_dir(Path::new(ROOT).join(controller));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if owner(&name.to_string_lossy()).is_some_and(|pid| test_kill_process(pid).is_err()) {
                let _tidy = fs::remove_dir(entry.path());
            }
        }
    }
}

/// The process that made a group of this name.
fn owner(name: &str) -> Option<Pid> {
    let (pid, _purpose) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_the_lab_have_an_owner() {
        let own = format!("{PREFIX}{}-service", std::process::id());
        assert_eq!(owner(&own), Some(rustix::process::getpid()));
        assert_eq!(owner("tidegate-lab-x-service"), None);
        assert_eq!(owner("system.slice"), None);
    }
}
