//! `/proc/PID/mountinfo`: where the control group hierarchies are mounted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::{lines, words};

/// Option of a mount whose files lack the name of their controller.
const NO_PREFIX: &str = "noprefix";

/// One mounted control group hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupMount {
    /// The group that the mount shows at its top, as seen from the reader's cgroup namespace.
    pub(crate) root: PathBuf,
    /// Where it is mounted.
    pub(crate) point: PathBuf,
    /// Names of its controllers; `None` for the unified hierarchy (v2).
    pub(crate) controllers: Option<Vec<String>>,
}

impl CgroupMount {
    /// Whether it is a v1 hierarchy with this controller, by its exact name.
    pub(crate) fn has_v1(&self, controller: &str) -> bool {
        self.controllers
            .as_ref()
            .is_some_and(|names| names.iter().any(|name| name == controller))
    }

    /// Whether the names of its files lack the name of their controller. The kernel allows that for cpuset alone.
    pub(crate) fn has_no_prefix(&self) -> bool {
        self.has_v1(NO_PREFIX)
    }

    /// Whether it is the unified hierarchy.
    pub(crate) fn is_v2(&self) -> bool {
        self.controllers.is_none()
    }
}

/// The control group mounts in the order of the file; other mounts and odd lines are skipped. Of two
/// at the same mount point the later one hides the earlier one.
pub(crate) fn parse(bytes: &[u8]) -> Vec<CgroupMount> {
    let mut mounts: Vec<CgroupMount> = Vec::new();
    for mount in lines(bytes).filter_map(parse_line) {
        mounts.retain(|earlier| earlier.point != mount.point);
        mounts.push(mount);
    }
    mounts
}

/// Whether another file system lays something of its own over a file, as lxcfs does with `/proc/stat`.
pub(crate) fn lays_over(bytes: &[u8], point: &Path) -> bool {
    lines(bytes).any(|line| {
        let at = words(line).nth(4).and_then(unescape);
        at.is_some_and(|at| at == point)
    })
}

/// `id parent major:minor root point options [tags…] - type source super-options`.
fn parse_line(line: &[u8]) -> Option<CgroupMount> {
    let mut words = words(line);
    let root = words.nth(3)?;
    let point = words.next()?;
    let kind = words.by_ref().skip_while(|word| *word != b"-").nth(1)?;
    let controllers = match kind {
        b"cgroup2" => None,
        // An older name of the same hierarchy, whose files have the older names too.
        b"cpuset" => Some(vec!["cpuset".to_owned(), NO_PREFIX.to_owned()]),
        b"cgroup" => Some(controllers_of(words.nth(1)?)),
        _ => return None,
    };
    Some(CgroupMount {
        root: unescape(root)?,
        point: unescape(point)?,
        controllers,
    })
}

fn controllers_of(options: &[u8]) -> Vec<String> {
    let names = options.split(|&byte| byte == b',');
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Undoes the kernel's `\ooo` for blanks and backslashes in paths.
fn unescape(word: &[u8]) -> Option<PathBuf> {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            path.push(byte);
            continue;
        }
        let (octal, after) = rest.split_at_checked(3)?;
        let code = octal.iter().try_fold(0_u32, |sum, digit| {
            let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 7)?;
            Some(sum * 8 + u32::from(digit))
        })?;
        path.push(u8::try_from(code).ok()?);
        rest = after;
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTS: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n\
        34 31 0:31 /docker/a /sys/fs/cgroup/cpu\\040set rw - cgroup cgroup rw,cpuset\n\
        41 31 0:38 /../.. /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn only_control_group_mounts_are_taken_and_controllers_told_by_name() {
        let mounts = parse(MOUNTS);
        assert_eq!(mounts.len(), 3);
        assert!(mounts[0].has_v1("cpu") && mounts[0].has_v1("cpuacct"));
        assert!(!mounts[1].has_v1("cpu") && mounts[1].has_v1("cpuset"));
        assert_eq!(mounts[1].point, Path::new("/sys/fs/cgroup/cpu set"));
        assert_eq!(mounts[1].root, Path::new("/docker/a"));
        assert!(mounts[2].is_v2() && !mounts[0].is_v2());
    }

    #[test]
    fn a_later_mount_hides_an_earlier_one() {
        let twice =
            b"1 0 0:1 / /cg rw - cgroup cgroup rw,cpu\n2 0 0:2 / /cg rw - cgroup2 none rw\n";
        let mounts = parse(twice);
        assert_eq!(mounts.len(), 1);
        assert!(mounts[0].is_v2());
    }

    #[test]
    fn odd_lines_are_skipped() {
        for text in [
            "",
            "1 2 3",
            "1 0 0:1 / /cg rw cgroup",
            "1 0 0:1 / /c\\4 rw - cgroup2 c rw",
        ] {
            assert!(parse(text.as_bytes()).is_empty(), "{text}");
        }
        assert!(parse(b"1 0 0:1 / /c\\777 rw - cgroup2 c rw").is_empty());
        for end in 0..MOUNTS.len() {
            assert!(parse(&MOUNTS[..end]).len() <= 3);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_mounts_or_nothing(bytes: Vec<u8>) {
            let _read = parse(&bytes);
        }
    }
}
