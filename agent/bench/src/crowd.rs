//! Two hundred processes in twenty groups: what the cost of a tick is promised for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const GROUPS: usize = 20;
const PROCESSES: usize = 10;

/// Processes that sleep, in groups of their own. This process is in another group beside them, as an
/// agent is in that of its service. All are gone when it is dropped.
#[derive(Debug)]
pub struct SleepingProcesses {
    name: String,
    /// In the order in which they were made.
    directories: Vec<PathBuf>,
    children: Vec<Child>,
    /// Lists of processes that this process was in before.
    before: Vec<PathBuf>,
}

impl SleepingProcesses {
    /// Starts it; `purpose` is part of the groups' names.
    ///
    /// # Errors
    /// The kernel's refusal: groups take root and a mounted cpu controller.
    pub fn start(purpose: &str) -> io::Result<Self> {
        let mut crowd = Self {
            name: format!("tidegate-{purpose}-{}", std::process::id()),
            directories: Vec::new(),
            children: Vec::new(),
            before: Vec::new(),
        };
        crowd.fill()?;
        Ok(crowd)
    }

    /// The pattern that the twenty groups fit.
    pub fn pattern(&self) -> String {
        format!("/{}/crowd-*", self.name)
    }

    fn fill(&mut self) -> io::Result<()> {
        let mounts = mounts();
        let tops = mounts.clone().map(|mount| mount.join(&self.name));
        for top in &tops {
            self.make(top.clone())?;
        }
        let own = self.make_all(&tops, "own")?;
        for (mount, place) in mounts.iter().zip(&own) {
            self.before.push(present_list(mount)?);
            join(place, std::process::id())?;
        }
        for group in 0..GROUPS {
            let places = self.make_all(&tops, &format!("crowd-{group}"))?;
            for _process in 0..PROCESSES {
                let mut sleeper = Command::new("sleep");
                let child = sleeper.arg("600").stdin(Stdio::null()).spawn()?;
                let pid = child.id();
                self.children.push(child);
                for place in &places {
                    join(place, pid)?;
                }
            }
        }
        Ok(())
    }

    fn make_all(&mut self, tops: &[PathBuf; 2], name: &str) -> io::Result<[PathBuf; 2]> {
        let places = tops.clone().map(|top| top.join(name));
        for place in &places {
            self.make(place.clone())?;
        }
        Ok(places)
    }

    fn make(&mut self, directory: PathBuf) -> io::Result<()> {
        if !directory.is_dir() {
            fs::create_dir(&directory)?;
            self.directories.push(directory);
        }
        Ok(())
    }
}

fn join(group: &Path, pid: u32) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), pid.to_string())
}

/// The mounts that account for CPU; with cgroup v2 and joint controllers they are one.
fn mounts() -> [PathBuf; 2] {
    let mount = Path::new("/sys/fs/cgroup");
    if mount.join("cgroup.controllers").exists() {
        return [mount.to_owned(), mount.to_owned()];
    }
    [mount.join("cpu"), mount.join("cpuacct")]
}

/// The list of processes of the group that this process is in, below a mount.
fn present_list(mount: &Path) -> io::Result<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup")?;
    let controller = mount.file_name().and_then(|name| name.to_str());
    let is_of_mount = |line: &&str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let names = parts.next().unwrap_or_default();
        names.is_empty() || names.split(',').any(|name| Some(name) == controller)
    };
    // The line of cgroup v2, which names no controller, is the last.
    let line = membership.lines().find(is_of_mount).unwrap_or_default();
    let path = line.splitn(3, ':').nth(2).unwrap_or("/");
    Ok(mount
        .join(path.trim_start_matches('/'))
        .join("cgroup.procs"))
}

impl Drop for SleepingProcesses {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended already is as good.
            let _ended = child.kill().and_then(|()| child.wait());
        }
        for list in &self.before {
            let _back: io::Result<()> = fs::write(list, std::process::id().to_string());
        }
        for directory in self.directories.iter().rev() {
            // A group left behind does no harm.
            let _gone: io::Result<()> = fs::remove_dir(directory);
        }
    }
}
