//! The path of a cgroup as an option.

use serde_json::Value as Json;

use crate::procfs::{CGROUP_ROOT, GroupPattern};
use crate::schema::Value;
use crate::schema::kind::{AnyText, Scalar};

/// The path of a cgroup below the controller's mount; patterns are allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct CgroupPath;

impl Scalar for CgroupPath {
    type Output = String;
    fn allowed(&self) -> String {
        "a path that begins with / below the cpu controller's mount; * and ? match names".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        let path = AnyText.parse(value)?;
        if path.contains(char::is_control) {
            return Err("holds a control character; no group's name does".to_owned());
        }
        if path.contains(['[', ']']) {
            return Err("only * and ? match names; [ and ] cannot stand here".to_owned());
        }
        let path = below_mount(&path);
        GroupPattern::new(path).map_err(|fault| fault.to_string())?;
        Ok(path.to_owned())
    }
    fn written(&self, value: &String) -> String {
        AnyText.written(value)
    }
    fn json_schema(&self) -> Json {
        Scalar::json_schema(&AnyText)
    }
}

/// What is below the mount, where the path was written with it, as a shell shows it. No group is called like the
/// folders of the mounts.
fn below_mount(path: &str) -> &str {
    let after = |path: &'_ str, mount: &str| -> Option<usize> {
        let rest = path.strip_prefix(mount)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(mount.len())
    };
    let Some(below) = after(path, CGROUP_ROOT).and_then(|end| path.get(end..)) else {
        return path;
    };
    let of_controller = MOUNTS.iter().find_map(|mount| after(below, mount));
    match of_controller
        .and_then(|end| below.get(end..))
        .unwrap_or(below)
    {
        "" => "/",
        below => below,
    }
}

/// Folders of the mounts that can hold the cpu controller.
const MOUNTS: [&str; 4] = ["/cpu,cpuacct", "/cpuacct,cpu", "/cpu", "/unified"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_s12_a_path_with_the_mount_is_understood() {
        for (written, meant) in [
            (
                "/sys/fs/cgroup/system.slice/x.service",
                "/system.slice/x.service",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/a/b", "/a/b"),
            ("/sys/fs/cgroup/cpu/a", "/a"),
            ("/sys/fs/cgroup/unified/a", "/a"),
            ("/sys/fs/cgroup/cpuset/a", "/cpuset/a"),
            ("/sys/fs/cgroup", "/"),
            ("/sys/fs/cgroup/", "/"),
            ("/system.slice/x.service", "/system.slice/x.service"),
            ("/sys/fs/cgroups/a", "/sys/fs/cgroups/a"),
            ("/cpu/a", "/cpu/a"),
        ] {
            assert_eq!(below_mount(written), meant, "{written}");
        }
    }
}
