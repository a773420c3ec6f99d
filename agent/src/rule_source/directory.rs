//! Rules from a directory of files: `*.toml` in our form, `*.json` and names of data ids in Sentinel's.

use std::io;
use std::path::{Path, PathBuf};

use super::form::{is_rule_file, read};
use super::last_good::{self, Document};
use super::quoting::Home;
use super::{SourceSet, unread};
use crate::schema::fault::Fault;
use crate::schema::source::Source;

/// Most rule files of a directory.
const FILES_MAX: usize = 1_000;

/// A directory of rule files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectorySource {
    directory: PathBuf,
}

const MISSING: &str = "no such directory";
const A_DIRECTORY: &str = "a directory of rule files";

impl DirectorySource {
    /// Names a directory; it need not be there yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// What it is, for messages.
    pub(super) fn path(&self) -> String {
        self.directory.display().to_string()
    }

    /// Whether the directory is not there.
    pub(super) fn is_missing(&self) -> bool {
        let found = std::fs::read_dir(&self.directory);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A directory that was named and is not there may still be made. Nobody named the usual ones, of the machine
    /// or of a user.
    fn missing(&self) -> Option<Fault> {
        let named = !self.directory.ends_with("tidegate/rules.d");
        let hint = "no rule is in force until it is there";
        let warning = || Fault::of_directory(&self.path(), MISSING, A_DIRECTORY, hint);
        (named && self.is_missing()).then(warning)
    }

    /// The rule files in the order of their names, and a warning for each file that is not looked at.
    fn files(&self) -> Result<(Vec<PathBuf>, Vec<Fault>), Vec<Fault>> {
        let (mut files, mut others) = (Vec::new(), Vec::new());
        let entries = match std::fs::read_dir(&self.directory) {
            // Without the directory there are no rules; it may be made later.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((files, Vec::new()));
            }
            other => other.map_err(|error| self.unreadable(&error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| self.unreadable(&error))?.path();
            if is_rule_file(&path) {
                files.push(path);
            } else {
                others.push(path);
            }
        }
        files.sort();
        if files.len() > FILES_MAX {
            let value = format!("{} rule files", files.len());
            return Err(self.fault(value, "at most 1000 rule files", "put rules together"));
        }
        Ok((files, unread::warnings(others)))
    }

    pub(super) fn empty(&self) -> SourceSet {
        SourceSet::new(last_good::DIRECTORY, self.path())
    }

    fn unreadable(&self, error: &io::Error) -> Vec<Fault> {
        let hint = "let the agent's user read and enter it";
        self.fault(error.to_string(), "a readable directory", hint)
    }

    /// The files as they are, half written or not.
    pub(super) fn read_files(&self) -> SourceSet {
        let mut set = self.empty();
        let (files, unread) = match self.files() {
            Ok(found) => found,
            Err(faults) => return set.with_faults(faults),
        };
        set.add_warnings(self.missing());
        set.add_warnings(unread);
        let home = Home::of(&self.directory);
        for path in files {
            match Source::read_found(&path) {
                Ok((source, opened)) => {
                    let mut read = read(&path, &source);
                    if let Some(why) = home.veils(&path, &opened) {
                        read.veil(why);
                    }
                    let document = Document {
                        name: path.display().to_string(),
                        text: source.text().to_owned(),
                    };
                    set.add(document, read);
                }
                Err(fault) => set = set.with_faults([*fault]),
            }
        }
        set
    }

    fn fault(&self, value: String, allowed: &str, hint: &str) -> Vec<Fault> {
        vec![Fault::of_directory(&self.path(), value, allowed, hint)]
    }
}
