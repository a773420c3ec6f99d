//! Reads rules when no file is half written.

use std::ffi::OsStr;
use std::time::Duration;

use super::DirectorySource;
use super::directory::is_rule_file;
use super::last_good::Document;
use super::look::{Look, STILL};
use crate::calendar::unix_now;
use crate::rule::RuleSet;
use crate::schema::fault::Fault;

/// Longest wait for files to be still.
const PATIENCE: Duration = Duration::from_secs(1);

/// A set that was read from files which stood still meanwhile, or which of them did not.
enum Tried {
    Read(Result<(RuleSet, Vec<Document>), Vec<Fault>>),
    Moving(Look, Look),
}

impl DirectorySource {
    /// Reads all rules anew, with the texts they are from, once no file has changed for 50 ms. Run inside a tokio runtime with time enabled.
    ///
    /// # Errors
    /// Every fault; a file that never stops changing is one.
    pub async fn load_still(&self) -> Result<(RuleSet, Vec<Document>), Vec<Fault>> {
        let begun = tokio::time::Instant::now();
        loop {
            match self.try_still().await {
                Tried::Read(rules) => return rules,
                Tried::Moving(before, after) if begun.elapsed() >= PATIENCE => {
                    return Err(vec![self.never_still(&before, &after)]);
                }
                Tried::Moving(..) => {}
            }
        }
    }

    async fn try_still(&self) -> Tried {
        let mut before = self.look();
        if !before.is_old(unix_now()) {
            tokio::time::sleep(STILL).await;
            let after = self.look();
            if after != before {
                return Tried::Moving(before, after);
            }
            before = after;
        }
        let rules = self.load_documents();
        // What was written while it was read may be half in the rules.
        let after = self.look();
        if after == before {
            Tried::Read(rules)
        } else {
            Tried::Moving(before, after)
        }
    }

    fn look(&self) -> Look {
        Look::at(self.directory(), is_rule_file)
    }

    fn never_still(&self, before: &Look, after: &Look) -> Fault {
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
