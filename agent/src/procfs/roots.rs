//! Where the kernel's files are looked for.

use std::path::{Path, PathBuf};

/// The two trees that everything is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// The tree that stands for `/proc` (`--proc-root DIR`).
    pub proc: PathBuf,
    /// The tree that stands for `/sys/fs/cgroup` (`--cgroup-root DIR`). Mounts that mountinfo
    /// names elsewhere, as on Android, are read in the tree around it, where it ends as the default does.
    pub cgroup: PathBuf,
}

/// Where the kernel's control groups are mounted on every system in use.
pub(crate) const CGROUP_ROOT: &str = "/sys/fs/cgroup";

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            cgroup: PathBuf::from(CGROUP_ROOT),
        }
    }
}

impl Roots {
    /// A file of the whole system, such as `stat`, below the tree that stands for `/proc`.
    pub(crate) fn proc_file(&self, name: &str) -> PathBuf {
        self.proc.join(name)
    }

    /// Where a mount point of mountinfo is to be read, or `None` if it lies outside the trees.
    pub(crate) fn mount_point(&self, point: &Path) -> Option<PathBuf> {
        if point.starts_with(&self.cgroup) {
            return Some(point.to_path_buf());
        }
        match point.strip_prefix(CGROUP_ROOT) {
            Ok(below) if below.as_os_str().is_empty() => Some(self.cgroup.clone()),
            Ok(below) => Some(self.cgroup.join(below)),
            Err(_elsewhere) => {
                let below = point.strip_prefix("/").unwrap_or(point);
                Some(self.system()?.join(below))
            }
        }
    }

    /// The tree that stands for `/`.
    fn system(&self) -> Option<&Path> {
        let usual = Path::new(CGROUP_ROOT).strip_prefix("/").ok()?;
        let is_usual = self.cgroup.ends_with(usual);
        is_usual.then(|| self.cgroup.ancestors().nth(usual.iter().count()))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_below_the_given_tree() {
        let roots = Roots {
            proc: "/p".into(),
            cgroup: "/host/cg".into(),
        };
        let at = |point: &str| roots.mount_point(Path::new(point));
        assert_eq!(at("/sys/fs/cgroup"), Some("/host/cg".into()));
        assert_eq!(at("/sys/fs/cgroup/cpu"), Some("/host/cg/cpu".into()));
        assert_eq!(at("/host/cg/cpu"), Some("/host/cg/cpu".into()));
        assert_eq!(at("/cgroup/cpu"), None);
        let around = Roots {
            proc: "/host/proc".into(),
            cgroup: "/host/sys/fs/cgroup".into(),
        };
        assert_eq!(
            around.mount_point(Path::new("/dev/cpuset")),
            Some("/host/dev/cpuset".into())
        );
        assert_eq!(
            Roots::default().mount_point(Path::new("/cgroup/cpu")),
            Some("/cgroup/cpu".into())
        );
    }
}
