//! What a directory of rules looks like from outside: which files there are, and which versions of them.
//!
//! It is looked at by its path each time, so that whatever stands behind the path is seen: a link that is swapped, a
//! mount, a file that is a link to another place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use crate::calendar::since_1970;

/// How long a file must stay unchanged before it is read. Over the step of the kernel's clock for files.
const STILL: Duration = Duration::from_millis(50);

/// The same of a file that is empty: whoever writes a file anew empties it first, and may be held up before the rest.
const EMPTY_STILL: Duration = Duration::from_millis(500);

/// A directory at one moment. Two looks are equal where the same files are in it, whenever it was written to.
#[derive(Debug, Clone, Default)]
pub struct DirectoryLook {
    /// Device and number of the directory; `None` where there is none that can be read.
    directory: Option<(u64, u64)>,
    /// When a name came or went last.
    changed: Option<Duration>,
    /// By name, all that do not begin with a dot. Of those that are rule files, the version.
    entries: BTreeMap<OsString, Option<Version>>,
}

/// A version of a file. Nobody can write to a file without moving the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Version {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed_s: meta.ctime(),
            changed_ns: meta.ctime_nsec(),
        }
    }

    /// How long it must stay as it is until it is read.
    fn unsettled(&self, unix: Duration) -> Duration {
        let still = if self.size == 0 { EMPTY_STILL } else { STILL };
        left(still, since_1970(self.changed_s, self.changed_ns), unix)
    }
}

/// What is left of `still` for what changed at a time.
fn left(still: Duration, changed: Duration, unix: Duration) -> Duration {
    let age = unix.checked_sub(changed).unwrap_or_default();
    still.saturating_sub(age)
}

impl PartialEq for DirectoryLook {
    fn eq(&self, other: &Self) -> bool {
        self.directory == other.directory && self.entries == other.entries
    }
}

impl Eq for DirectoryLook {}

impl DirectoryLook {
    /// Looks at a directory; `is_rules` tells by the path which files are read for rules.
    pub fn at(directory: &Path, is_rules: impl Fn(&Path) -> bool) -> Self {
        let mut look = Self::default();
        let Ok(meta) = fs::metadata(directory) else {
            return look;
        };
        look.directory = Some((meta.dev(), meta.ino()));
        look.changed = Some(since_1970(meta.ctime(), meta.ctime_nsec()));
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let version = || fs::metadata(&path).ok().map(|meta| Version::of(&meta));
            let version = if is_rules(&path) { version() } else { None };
            look.entries.insert(entry.file_name(), version);
        }
        look
    }

    /// Device and number of the directory.
    pub const fn directory(&self) -> Option<(u64, u64)> {
        self.directory
    }

    /// How long all of it must stay as it is, until no file can be half written and no directory be half removed; `unix`
    /// is the time since 1970. What has its time to come is taken to have changed just now.
    pub fn unsettled(&self, unix: Duration) -> Duration {
        let files = self.entries.values().flatten();
        let files = files.map(|version| version.unsettled(unix));
        let directory = self.changed.map(|changed| left(STILL, changed, unix));
        files.chain(directory).max().unwrap_or_default()
    }

    /// A file that is another one than in the look before.
    pub fn first_changed(&self, before: &Self) -> Option<&OsString> {
        let mut entries = self.entries.iter();
        let changed = entries.find(|(name, version)| before.entries.get(*name) != Some(version));
        changed.map(|(name, _version)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::unix_now;

    #[test]
    fn field_r9_a_directory_that_a_file_has_just_left_may_be_half_removed() {
        let directory = tempfile::tempdir().unwrap();
        let look = || DirectoryLook::at(directory.path(), |_path| true);
        let file = directory.path().join("a.toml");
        fs::write(&file, "").unwrap();
        let full = look();
        let before = unix_now();
        fs::remove_file(&file).unwrap();
        let empty = look();
        assert!(full != empty && empty.unsettled(before) > Duration::ZERO);
        let hour = Duration::from_hours(1);
        assert_eq!(empty.unsettled(before + hour), Duration::ZERO);
        // Of what was written, an empty file may be half of what is to come.
        fs::write(&file, "").unwrap();
        let emptied = look().unsettled(unix_now());
        fs::write(&file, "# a").unwrap();
        let written = look().unsettled(unix_now());
        assert!(written <= STILL && (emptied > STILL || unix_now() > before + STILL));
        fs::remove_file(&file).unwrap();
        // That it was written to and is as before is no change.
        fs::write(&file, "").unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(look(), empty);
    }
}
