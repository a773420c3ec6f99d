//! Whether messages may repeat what a rule file holds. Who may put a link into the directory need not be allowed to
//! read what it leads to, and the log and `check` are read by others.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const LED_OUT: &str =
    "the file is a link that leads out of the directory, so nothing of it is quoted";
const FOREIGN: &str = "the file is not of the directory's owner, so nothing of it is quoted";
const CLOSED: &str =
    "not all who may read the directory may read the file, so nothing of it is quoted";

/// The directory that is read for rules.
#[derive(Debug)]
pub(super) struct Home<'p> {
    directory: &'p Path,
    access: Option<Access>,
    agent_uid: u32,
}

impl<'p> Home<'p> {
    pub(super) fn of(directory: &'p Path) -> Self {
        Self {
            directory,
            access: directory.metadata().ok().as_ref().map(Access::of),
            agent_uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// Why nothing of a file that was opened here may be quoted.
    pub(super) fn veils(&self, path: &Path, opened: &Metadata) -> Option<&'static str> {
        let real = path.canonicalize().ok();
        let home = self.directory.canonicalize().ok();
        let is_within = real
            .zip(home)
            .is_some_and(|(real, home)| real.starts_with(home));
        if !is_within {
            return Some(LED_OUT);
        }
        let Some(directory) = self.access else {
            return Some(CLOSED);
        };
        Access::of(opened).veils(directory, self.agent_uid)
    }
}

/// Who may read a file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    uid: u32,
    gid: u32,
    mode: u32,
    links: u64,
}

impl Access {
    fn of(meta: &Metadata) -> Self {
        Self {
            uid: meta.uid(),
            gid: meta.gid(),
            mode: meta.mode(),
            links: meta.nlink(),
        }
    }

    /// Why nothing of this file of a directory may be quoted.
    fn veils(self, directory: Self, agent_uid: u32) -> Option<&'static str> {
        let is_of_directory = self.uid == directory.uid;
        // With a second link, somebody else may have put the agent's own file here.
        let is_of_agent = self.uid == agent_uid && self.links == 1;
        if !is_of_directory && !is_of_agent {
            return Some(FOREIGN);
        }
        (!self.is_open_to_readers_of(directory)).then_some(CLOSED)
    }

    fn is_open_to_readers_of(self, directory: Self) -> bool {
        let [group, all] = [0o040, 0o044].map(|bits| self.mode & bits == bits);
        let to_owner = self.uid == directory.uid || all;
        let to_group = directory.mode & 0o040 == 0 || (group && self.gid == directory.gid) || all;
        let to_others = directory.mode & 0o004 == 0 || all;
        to_owner && to_group && to_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: u32 = 900;
    const OWNER: u32 = 1000;

    fn access(uid: u32, gid: u32, mode: u32) -> Access {
        Access {
            uid,
            gid,
            mode,
            links: 1,
        }
    }

    #[test]
    fn field_b9_a_file_is_quoted_to_those_who_may_read_it_anyway() {
        let open = access(OWNER, 7, 0o40755);
        let of_group = access(OWNER, 7, 0o40750);
        let private = access(OWNER, 7, 0o40700);
        let twice = |file| Access { links: 2, ..file };
        for (file, directory, why) in [
            (access(OWNER, 7, 0o644), open, None),
            (twice(access(OWNER, 7, 0o644)), open, None),
            (access(AGENT, 0, 0o644), open, None),
            (access(OWNER, 7, 0o600), private, None),
            (access(OWNER, 7, 0o640), of_group, None),
            (access(OWNER, 8, 0o644), of_group, None),
            // A hard link to a file of another.
            (twice(access(0, 0, 0o600)), open, Some(FOREIGN)),
            (twice(access(0, 0, 0o600)), private, Some(FOREIGN)),
            (twice(access(AGENT, 0, 0o644)), open, Some(FOREIGN)),
            (access(1001, 7, 0o644), open, Some(FOREIGN)),
            (access(AGENT, 0, 0o600), private, Some(CLOSED)),
            (access(OWNER, 7, 0o640), open, Some(CLOSED)),
            (access(OWNER, 7, 0o600), of_group, Some(CLOSED)),
            (access(OWNER, 8, 0o640), of_group, Some(CLOSED)),
            (access(OWNER, 8, 0o604), open, Some(CLOSED)),
        ] {
            assert_eq!(file.veils(directory, AGENT), why, "{file:?} {directory:?}");
        }
    }
}
