//! How much memory the agent's group leaves it. Programs are not worth the agent: loaded where they do not fit, they get
//! it killed.

use std::fs;
use std::path::{Path, PathBuf};

/// What loading takes for a moment, with the maps that stay, bytes. With 19 MiB left a development build was killed.
const NEEDED: u64 = 20 << 20;

const MIB: u64 = 1 << 20;
/// Limits from here on are none.
const UNLIMITED: u64 = 1 << 60;

/// A hierarchy that may limit memory.
struct Hierarchy {
    mount: &'static str,
    /// What stands before the own group's path in `/proc/self/cgroup`, behind the number.
    line: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// What can be taken back of it at any time, and what cannot be of that, in `memory.stat`.
    files: [&'static str; 2],
}

const HIERARCHIES: [Hierarchy; 2] = [
    Hierarchy {
        mount: "/sys/fs/cgroup",
        line: "::",
        limit: "memory.max",
        usage: "memory.current",
        files: ["file ", "shmem "],
    },
    Hierarchy {
        mount: "/sys/fs/cgroup/memory",
        line: ":memory:",
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        files: ["total_cache ", "total_shmem "],
    },
];

/// Why programs do not fit, if they do not: what the group, or one above it, has left.
pub(super) fn lacking() -> Option<String> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (left, limit) = least_left(&own, |path| fs::read_to_string(path).ok())?;
    (left < NEEDED).then(|| {
        format!(
            "they need {} MiB, and {} MiB of the {} MiB of its group are left",
            NEEDED / MIB,
            left / MIB,
            limit / MIB
        )
    })
}

/// What is left of the tightest limit, and that limit, bytes; `None` where there is none, or none in sight.
fn least_left(own: &str, read: impl Fn(&Path) -> Option<String>) -> Option<(u64, u64)> {
    let groups = HIERARCHIES.iter().filter_map(|hierarchy| {
        let paths = own.lines().filter_map(|line| path(line, hierarchy.line));
        let top = Path::new(hierarchy.mount);
        let group = paths.map(|path| top.join(path)).next()?;
        let above: Vec<PathBuf> = group
            .ancestors()
            .take_while(|directory| directory.starts_with(top))
            .map(Path::to_path_buf)
            .collect();
        Some((hierarchy, above))
    });
    let left = groups.flat_map(|(hierarchy, above)| {
        let left = above
            .iter()
            .filter_map(|directory| left(hierarchy, directory, &read));
        left.collect::<Vec<_>>()
    });
    left.min()
}

/// The path behind the first of the two colons, below the mount.
fn path<'t>(line: &'t str, controller: &str) -> Option<&'t str> {
    let (number, path) = line.split_once(controller)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| path.trim_start_matches('/'))
}

fn left(
    hierarchy: &Hierarchy,
    directory: &Path,
    read: impl Fn(&Path) -> Option<String>,
) -> Option<(u64, u64)> {
    let number = |name: &str| read(&directory.join(name))?.trim().parse().ok();
    let limit: u64 = number(hierarchy.limit)?;
    if limit >= UNLIMITED {
        return None;
    }
    let usage: u64 = number(hierarchy.usage)?;
    let stat = read(&directory.join("memory.stat")).unwrap_or_default();
    let [files, shared] = hierarchy.files.map(|word| {
        let line = stat.lines().find_map(|line| line.strip_prefix(word));
        line.and_then(|number| number.trim().parse::<u64>().ok())
            .unwrap_or(0)
    });
    let held = usage.saturating_sub(files.saturating_sub(shared));
    Some((limit.saturating_sub(held), limit))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(own: &str, files: &[(&str, &str)]) -> Option<(u64, u64)> {
        let files: BTreeMap<_, _> = files.iter().copied().collect();
        let read = |path: &Path| {
            let text = files.get(path.to_str()?)?;
            Some((*text).to_owned())
        };
        least_left(own, read)
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts_without_what_can_be_taken_back() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "25165824\n"),
            ("/sys/fs/cgroup/a/memory.current", "20971520\n"),
            (
                "/sys/fs/cgroup/a/memory.stat",
                "anon 1\nfile 10485760\nkernel 5\nshmem 2097152\n",
            ),
        ];
        let left = found("0::/a/b\n", &files);
        assert_eq!(left, Some((12 * MIB, 24 * MIB)));
        assert_eq!(found("0::/c\n", &files), None);
    }

    #[test]
    fn the_older_hierarchy_is_read_too() {
        let files = [
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "22020096"),
            ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "8388608"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712",
            ),
        ];
        let own = "9:name=systemd:/x\n4:memory:/x\n0::/\n";
        assert_eq!(found(own, &files), Some((13 * MIB, 21 * MIB)));
        assert_eq!(found("4:memory:/../..\n", &files), None);
    }
}
