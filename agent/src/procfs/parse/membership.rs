//! `/proc/PID/cgroup`: which group a process is in, per hierarchy.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::lines;
use super::mount_info::CgroupMount;
use crate::procfs::NoValue;

/// The path of a process in each hierarchy, as the file tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Membership {
    /// Controllers of v1 with the path of the group.
    v1: Vec<(String, PathBuf)>,
    /// Path in the unified hierarchy.
    v2: Option<PathBuf>,
}

impl Membership {
    /// The path in the v1 hierarchy of `controller`, by its exact name: `cpu` is not `cpuset`.
    pub(crate) fn v1(&self, controller: &str) -> Option<&Path> {
        let named = self.v1.iter().find(|(name, _path)| name == controller);
        named.map(|(_name, path)| path.as_path())
    }

    /// The path in a mounted hierarchy.
    pub(crate) fn in_mount(&self, mount: &CgroupMount) -> Option<&Path> {
        match &mount.controllers {
            None => self.v2(),
            Some(names) => names.iter().find_map(|name| self.v1(name)),
        }
    }

    /// The path in the unified hierarchy.
    pub(crate) fn v2(&self) -> Option<&Path> {
        self.v2.as_deref()
    }
}

/// Reads the file. Lines that are not `number:controllers:path` are skipped.
///
/// # Errors
/// [`NoValue::Empty`] if no line is one.
pub(crate) fn parse(bytes: &[u8]) -> Result<Membership, NoValue> {
    let mut read = Membership::default();
    for line in lines(bytes) {
        let mut parts = line.splitn(3, |&byte| byte == b':');
        let (Some(number), Some(controllers), Some(path)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if !path.starts_with(b"/") {
            continue;
        }
        let path = PathBuf::from(OsStr::from_bytes(without_deleted_mark(path)));
        if number == b"0" && controllers.is_empty() {
            read.v2 = Some(path);
            continue;
        }
        for controller in controllers.split(|&byte| byte == b',') {
            read.v1.push((
                String::from_utf8_lossy(controller).into_owned(),
                path.clone(),
            ));
        }
    }
    if read == Membership::default() {
        Err(NoValue::Empty)
    } else {
        Ok(read)
    }
}

/// The kernel marks the path of a removed group.
fn without_deleted_mark(path: &[u8]) -> &[u8] {
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controllers_are_told_apart_by_their_whole_name() {
        let read = parse(b"3:cpuset:/a\n2:cpuacct:/b\n1:cpu:/c\n0::/\n").unwrap();
        assert_eq!(read.v1("cpu"), Some(Path::new("/c")));
        assert_eq!(read.v1("cpuacct"), Some(Path::new("/b")));
        assert_eq!(read.v1("cpuset"), Some(Path::new("/a")));
        assert_eq!(read.v1("memory"), None);
        assert_eq!(read.v2(), Some(Path::new("/")));
    }

    #[test]
    fn joint_controllers_share_a_path_that_may_hold_colons() {
        let read = parse(b"6:cpu,cpuacct:/a:b/c d\n1:name=systemd:/x\n").unwrap();
        assert_eq!(read.v1("cpuacct"), Some(Path::new("/a:b/c d")));
        assert_eq!(read.v1("cpu"), read.v1("cpuacct"));
        assert_eq!(read.v2(), None);
    }

    #[test]
    fn odd_lines_are_skipped_and_an_empty_file_is_a_fault() {
        assert_eq!(parse(b""), Err(NoValue::Empty));
        assert_eq!(
            parse(b"nonsense\n1:cpu\n1:cpu:relative\n"),
            Err(NoValue::Empty)
        );
        let read = parse(b"0::/gone (deleted)\n").unwrap();
        assert_eq!(read.v2(), Some(Path::new("/gone")));
    }

    proptest! {
        #[test]
        fn any_bytes_give_paths_or_a_fault(bytes: Vec<u8>) {
            let _read = parse(&bytes);
        }
    }
}
