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
pub const STILL: Duration = Duration::from_millis(50);

/// A directory at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Device and number of the directory; `None` where there is none that can be read.
    directory: Option<(u64, u64)>,
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

    fn changed(&self) -> Duration {
        since_1970(self.changed_s, self.changed_ns)
    }
}

impl Look {
    /// Looks at a directory; `is_rules` tells by the path which files are read for rules.
    pub fn at(directory: &Path, is_rules: impl Fn(&Path) -> bool) -> Self {
        let mut look = Self::default();
        let Ok(meta) = fs::metadata(directory) else {
            return look;
        };
        look.directory = Some((meta.dev(), meta.ino()));
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

    /// Whether no file has changed for so long that none can be half written; `unix` is the time since 1970. A file
    /// whose time is to come is not known to be so.
    pub fn is_old(&self, unix: Duration) -> bool {
        let is_old = |version: &Version| {
            let age = unix.checked_sub(version.changed());
            age.is_some_and(|age| age >= STILL)
        };
        self.entries.values().flatten().all(is_old)
    }

    /// A file that is another one than in the look before.
    pub fn first_changed(&self, before: &Self) -> Option<&OsString> {
        let mut entries = self.entries.iter();
        let changed = entries.find(|(name, version)| before.entries.get(*name) != Some(version));
        changed.map(|(name, _version)| name)
    }
}
