//! What this host lets programs do.

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities};

use crate::procfs::Lack;

/// Kernel that has all that the programs use: ring buffers, and capabilities of their own.
const LEAST: (u32, u32) = (5, 8);

/// Kernel from which on the memory of maps is no locked memory.
const UNLOCKED: (u32, u32) = (5, 11);

/// Where tracefs is mounted, on systems that mount it.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Why no program can be loaded at all, if that is known beforehand. The kernel has the last word.
pub(super) fn lack() -> Option<Lack> {
    if own_version().is_some_and(|version| version < LEAST) {
        return Some(Lack::OldKernel);
    }
    let locked = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    if locked.contains("[confidentiality]") {
        return Some(Lack::Lockdown);
    }
    let Ok(sets) = capabilities(None) else {
        return None;
    };
    let needed = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let has = |set| sets.effective.contains(set);
    (!has(needed) && !has(CapabilitySet::SYS_ADMIN)).then_some(Lack::Capability)
}

/// What is lacking where the kernel answers that programs or maps are not permitted.
pub(super) fn lack_of_denied() -> Lack {
    denied_by(own_version(), getrlimit(Resource::Memlock).current)
}

/// The same on a kernel of this version with this limit on locked memory, bytes; `None` is no limit.
fn denied_by(version: Option<(u32, u32)>, limit: Option<u64>) -> Lack {
    let is_locked = version.is_some_and(|version| version < UNLOCKED);
    if is_locked && limit.is_some() {
        Lack::LockedMemory
    } else {
        Lack::Capability
    }
}

fn own_version() -> Option<(u32, u32)> {
    version(&uname().release().to_string_lossy())
}

/// What the kernel demands of who looks at all tasks by perf events, as the end of a reason.
pub(super) fn paranoia() -> String {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match level.trim() {
        "" => String::new(),
        level => format!(" (kernel.perf_event_paranoid={level})"),
    }
}

/// Major and minor version of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next()?.parse().ok()?))
}

/// Which fields a plain tracepoint has, as tracefs tells.
pub(super) fn format_of(tracepoint: &str) -> Option<String> {
    TRACEFS.iter().find_map(|mount| {
        fs::read_to_string(format!("{mount}/events/sched/{tracepoint}/format")).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_s14_a_limit_on_locked_memory_is_named_where_maps_count_as_such() {
        for (version, limit, lack) in [
            (Some((5, 10)), Some(65_536), Lack::LockedMemory),
            (Some((5, 10)), None, Lack::Capability),
            (Some((5, 11)), Some(65_536), Lack::Capability),
            (None, Some(65_536), Lack::Capability),
        ] {
            assert_eq!(denied_by(version, limit), lack, "{version:?} {limit:?}");
        }
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("5.8-rc1"), Some((5, 8)));
        assert_eq!(version("5"), None);
        assert_eq!(version(""), None);
        assert!(version("5.4.0-generic") < Some(LEAST));
        assert!(version("5.10.0") > Some(LEAST));
    }
}
