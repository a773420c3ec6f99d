//! What one mount shows of its hierarchy, and where below it the paths lead that the kernel tells a reader in a
//! control group namespace.
//!
//! The kernel writes paths as seen from the top of the reader's namespace, and `..` for what is above that. A mount
//! may begin above it (`/../..`: made before the reader got its namespace) or below it (`/docker/abc`: one container).
//! Where it begins above, only the reader's own group can tell how the groups on the way are called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::directory;
use super::parse::mount_info::CgroupMount;

/// Most directories that are looked at to find the reader's own group.
const LOOKED_AT_MAX: usize = 4096;

/// One mount with what is known of its place.
#[derive(Debug)]
pub(crate) struct View {
    /// The mount, at the path where it is read.
    pub(crate) mount: CgroupMount,
    /// Top of the reader's namespace below the mount; `None` where it is not in sight or not known.
    namespace: Option<PathBuf>,
    /// Whether nothing is above the mount.
    pub(crate) is_whole: bool,
}

/// The reader itself: its pid, and the path of its group as it is told.
#[derive(Debug)]
pub(crate) struct Own<'a> {
    pub(crate) pid: u32,
    pub(crate) path: Option<&'a Path>,
}

impl View {
    /// Looks at the top of a mount, and below it for the reader's own group where that is needed.
    pub(crate) fn new(mount: CgroupMount, own: &Own<'_>) -> Self {
        Self {
            namespace: namespace(&mount, own),
            is_whole: is_whole(&mount),
            mount,
        }
    }

    /// Where the group stands below the mount that the kernel calls so; `None` = out of sight.
    pub(crate) fn below(&self, told: &Path) -> Option<PathBuf> {
        if let Ok(below) = told.strip_prefix(&self.mount.root)
            && !climbs(below)
        {
            return Some(below.to_path_buf());
        }
        let mut at = self.namespace.clone()?;
        for step in told.components() {
            match step {
                Component::Normal(name) => at.push(name),
                Component::ParentDir if !at.pop() => return None,
                Component::ParentDir
                | Component::RootDir
                | Component::CurDir
                | Component::Prefix(_) => {}
            }
        }
        Some(at)
    }

    /// Whether the top of the mount is the reader's own group or one above it in its own container: what stands
    /// for the own group where its path is hidden.
    pub(crate) fn begins_with_own(&self) -> bool {
        !climbs(&self.mount.root)
    }
}

fn climbs(path: &Path) -> bool {
    path.components().any(|step| step == Component::ParentDir)
}

/// The kernel keeps some files from the top of a hierarchy, and others for it alone.
fn is_whole(mount: &CgroupMount) -> bool {
    let there = |name: &str| mount.point.join(name).exists();
    if mount.is_v2() {
        !["cgroup.type", "cgroup.events", "cpu.max"]
            .iter()
            .any(|name| there(name))
    } else {
        ["cgroup.sane_behavior", "release_agent"]
            .iter()
            .any(|name| there(name))
    }
}

fn namespace(mount: &CgroupMount, own: &Own<'_>) -> Option<PathBuf> {
    let mut above = 0_usize;
    for step in mount.root.components() {
        match step {
            Component::ParentDir => above = above.saturating_add(1),
            // Beside the reader's namespace, or inside of it.
            Component::Normal(_) => return None,
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    if above == 0 {
        return Some(PathBuf::new());
    }
    let path = own.path.filter(|path| !climbs(path))?;
    let path = path.strip_prefix("/").unwrap_or(path);
    let depth = above.saturating_add(path.components().count());
    let found = find_member(&mount.point, depth, own.pid)?;
    let top = found.ancestors().nth(path.components().count())?;
    found.ends_with(path).then(|| top.to_path_buf())
}

/// The group so deep below a mount that has this process.
fn find_member(point: &Path, depth: usize, pid: u32) -> Option<PathBuf> {
    let mut level = vec![PathBuf::new()];
    let mut looked_at = 0_usize;
    for _step in 0..depth {
        let mut next = Vec::new();
        for below in &level {
            looked_at = looked_at.saturating_add(1);
            if looked_at > LOOKED_AT_MAX {
                return None;
            }
            let Ok(dir) = directory::open(&point.join(below)) else {
                continue;
            };
            // A directory that goes away meanwhile does not hold the reader.
            let _seen = directory::each_directory(&dir, &mut |name| {
                next.push(below.join(OsStr::from_bytes(name)));
            });
        }
        level = next;
    }
    level.into_iter().take(LOOKED_AT_MAX).find(|below| {
        let list = fs::read_to_string(point.join(below).join("cgroup.procs")).unwrap_or_default();
        list.lines().any(|line| line.parse() == Ok(pid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(root: &str, namespace: Option<&str>) -> View {
        View {
            mount: CgroupMount {
                root: root.into(),
                point: "/cg".into(),
                controllers: None,
            },
            namespace: namespace.map(PathBuf::from),
            is_whole: true,
        }
    }

    #[test]
    fn field_s17_paths_with_dots_lead_from_the_top_of_the_namespace() {
        let above = view("/../..", Some("user.slice/one.scope"));
        let told = |path: &str| {
            above
                .below(Path::new(path))
                .map(|at| at.display().to_string())
        };
        assert_eq!(told("/").as_deref(), Some("user.slice/one.scope"));
        assert_eq!(told("/in").as_deref(), Some("user.slice/one.scope/in"));
        assert_eq!(
            told("/../two.scope").as_deref(),
            Some("user.slice/two.scope")
        );
        assert_eq!(told("/../../web.service").as_deref(), Some("web.service"));
        assert_eq!(told("/../..").as_deref(), Some(""));
        assert_eq!(told("/../../../x"), None);
        let blind = view("/../..", None);
        assert_eq!(blind.below(Path::new("/")), None);
        assert_eq!(blind.below(Path::new("/../../a/b")), Some("a/b".into()));
    }

    #[test]
    fn field_s17_a_mount_of_one_container_shows_nothing_beside_it() {
        let one = view("/docker/abc", None);
        assert_eq!(one.below(Path::new("/docker/abc/app")), Some("app".into()));
        for path in ["/docker/other", "/", "/../x", "/docker/abc/../other"] {
            assert_eq!(one.below(Path::new(path)), None, "{path}");
        }
    }
}
