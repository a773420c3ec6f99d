//! Reads rules when no file is half written, and again when one has changed.

use std::ffi::OsStr;
use std::time::Duration;

use super::form::is_rule_file;
use super::last_good::DIRECTORY;
use super::look::DirectoryLook;
use super::{
    DirectorySource, DirectoryWatch, NextSet, RuleSource, SetStream, SourceSet, SourceState,
};
use crate::calendar::unix_now;
use crate::schema::fault::Fault;

/// Longest wait for files to be still.
const PATIENCE: Duration = Duration::from_secs(1);

impl RuleSource for DirectorySource {
    fn name(&self) -> String {
        self.path()
    }

    fn kind(&self) -> &'static str {
        DIRECTORY
    }

    fn state(&self) -> SourceState {
        if self.is_missing() {
            SourceState::Missing
        } else {
            SourceState::Present
        }
    }

    fn read(&self) -> SourceSet {
        self.read_files()
    }

    fn follow(&self) -> Box<dyn SetStream> {
        Box::new(DirectorySets::new(self.clone()))
    }
}

/// The sets of a directory.
#[derive(Debug)]
struct DirectorySets {
    source: DirectorySource,
    watch: DirectoryWatch,
    /// Whether a set is due whatever the watch says: the first one, or one whose reading was dropped.
    is_due: bool,
}

impl DirectorySets {
    fn new(source: DirectorySource) -> Self {
        Self {
            watch: DirectoryWatch::new(source.directory()),
            source,
            is_due: true,
        }
    }
}

impl SetStream for DirectorySets {
    fn next(&mut self) -> NextSet<'_> {
        Box::pin(async {
            if !self.is_due {
                if let Err(error) = self.watch.changed().await {
                    tracing::warn!(event = "rules_not_watched", %error, "the rules are not watched; send SIGHUP after a change");
                    return std::future::pending().await;
                }
                self.is_due = true;
            }
            let set = self.source.read_still().await;
            self.is_due = false;
            set
        })
    }
}

/// A set that was read from files which stood still meanwhile, or which of them did not.
enum Tried {
    Read(Box<SourceSet>),
    Moving(DirectoryLook, DirectoryLook),
}

impl DirectorySource {
    /// Reads all rules anew once no file has changed for 50 ms, and an empty one for half a second. A file that never
    /// stops changing is a fault. Run inside a tokio runtime with time enabled.
    pub async fn read_still(&self) -> SourceSet {
        let begun = tokio::time::Instant::now();
        loop {
            match self.try_still().await {
                Tried::Read(set) => return *set,
                Tried::Moving(before, after) if begun.elapsed() >= PATIENCE => {
                    let fault = self.never_still(&before, &after);
                    return self.empty().with_faults([fault]);
                }
                Tried::Moving(..) => {}
            }
        }
    }

    async fn try_still(&self) -> Tried {
        let mut before = self.look();
        let unsettled = before.unsettled(unix_now());
        if !unsettled.is_zero() {
            tokio::time::sleep(unsettled).await;
            let after = self.look();
            if after != before {
                return Tried::Moving(before, after);
            }
            before = after;
        }
        let set = Box::new(self.read_files());
        // What was written while it was read may be half in the rules.
        let after = self.look();
        if after == before {
            Tried::Read(set)
        } else {
            Tried::Moving(before, after)
        }
    }

    fn look(&self) -> DirectoryLook {
        DirectoryLook::at(self.directory(), is_rule_file)
    }

    fn never_still(&self, before: &DirectoryLook, after: &DirectoryLook) -> Fault {
        let changed = after
            .first_changed(before)
            .or_else(|| before.first_changed(after));
        let path = self
            .directory()
            .join(changed.map_or(OsStr::new(""), |name| name));
        Fault::of_file(
            &path.display().to_string(),
            "it never stops changing",
            "a file that is left alone for 50 ms",
            "write a new file beside it and rename it over the old one",
        )
    }
}
