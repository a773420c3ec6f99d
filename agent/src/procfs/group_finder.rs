//! In which group a process is, for those who do not watch it.

use std::path::PathBuf;

use super::layout::Layout;
use super::roots::Roots;

/// Finds the group of a process. It reads `/proc` when it is asked and keeps nothing of it.
#[derive(Debug)]
pub struct GroupFinder {
    layout: Layout,
    roots: Roots,
}

impl GroupFinder {
    /// Finds the mounts below the given trees.
    pub fn new(roots: Roots) -> Self {
        Self {
            layout: Layout::discover(roots.clone()),
            roots,
        }
    }

    /// Path of a process's group below the mount of the cpu controller, without a leading `/`; `None`
    /// where the process or its group is not in sight.
    pub fn of_process(&self, pid: u32) -> Option<PathBuf> {
        let places = self.layout.places_of_process(Some(pid)).ok()?;
        places.cpu.ok().map(|place| place.below)
    }

    /// Effective user id of a process.
    pub fn user_of(&self, pid: u32) -> Option<u32> {
        let status = std::fs::read(self.roots.proc_file(&format!("{pid}/status"))).ok()?;
        let status = String::from_utf8_lossy(&status);
        // Real, effective, saved, of the file system. The name is the first line and holds no newline.
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_user_and_a_process_that_is_not_there_has_none() {
        let finder = GroupFinder::new(Roots::default());
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(finder.user_of(std::process::id()), Some(own));
        assert_eq!(finder.user_of(0), None);
        assert_eq!(finder.of_process(0), None);
    }
}
