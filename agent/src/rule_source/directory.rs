//! Rules from a directory of files: `*.toml` in our form, `*.json` and names of data ids in Sentinel's.

use std::io;
use std::path::{Path, PathBuf};

use super::last_good::Document;
use super::quoting::Home;
use super::{RuleSource, unread};
use crate::rule::{Body, Quirks, Rule, RuleSet, System, file, sentinel};
use crate::schema::fault::{Fault, Sink};
use crate::schema::source::Source;

/// Most rule files of a directory.
const FILES_MAX: usize = 1_000;

/// A directory of rule files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectorySource {
    directory: PathBuf,
    quirks: Quirks,
    /// Marks of the configuration that are asked as a system rule.
    law: Option<Box<System>>,
}

/// Id of the rule with the marks of the configuration.
const LAW: &str = "law";

const MISSING: &str = "no such directory";
const A_DIRECTORY: &str = "a directory of rule files";

impl DirectorySource {
    /// Names a directory; it need not be there yet.
    pub fn new(directory: impl Into<PathBuf>, quirks: Quirks) -> Self {
        Self {
            directory: directory.into(),
            quirks,
            law: None,
        }
    }

    /// The same with marks of the configuration, which are asked as the first system rule of the set.
    #[must_use]
    pub fn with_law(self, law: Option<System>) -> Self {
        Self {
            law: law.map(Box::new),
            ..self
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Refuses to go from the rules `now` in force to those that were just loaded, where the directory is gone: a
    /// mount that is lost, or a move that is half done, must not lift every limit.
    ///
    /// # Errors
    /// The directory is not there, and it was what the rules are from.
    pub fn check_successor(&self, next: &RuleSet, now: &RuleSet) -> Result<(), Vec<Fault>> {
        let lifted = now.rules().iter().any(is_of_file);
        if next.rules().iter().any(is_of_file) || !lifted || !self.is_missing() {
            return Ok(());
        }
        let hint = "an empty one lifts all rules";
        Err(self.fault(MISSING.to_owned(), A_DIRECTORY, hint))
    }

    /// Whether the directory is not there.
    pub fn is_missing(&self) -> bool {
        let found = std::fs::read_dir(&self.directory);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// A directory that was named and is not there may still be made. Nobody named the usual ones, of the machine
    /// or of a user.
    fn missing(&self) -> Option<Fault> {
        let named = !self.directory.ends_with("tidegate/rules.d");
        let hint = "no rule is in force until it is there";
        let warning = || Fault::of_directory(&self.name(), MISSING, A_DIRECTORY, hint);
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

    fn unreadable(&self, error: &io::Error) -> Vec<Fault> {
        let hint = "let the agent's user read and enter it";
        self.fault(error.to_string(), "a readable directory", hint)
    }

    /// Reads all rules anew, with the texts they are from.
    ///
    /// # Errors
    /// As [`RuleSource::load`].
    pub fn load_documents(&self) -> Result<(RuleSet, Vec<Document>), Vec<Fault>> {
        let (files, unread) = self.files()?;
        let (mut read_all, mut documents) = (FileRules::default(), Vec::new());
        read_all.warnings.extend(self.missing());
        read_all.warnings.extend(unread);
        let home = Home::of(&self.directory);
        for path in files {
            match Source::read_found(&path) {
                Ok((source, opened)) => {
                    let mut read = read(&path, &source);
                    if let Some(why) = home.veils(&path, &opened) {
                        read.veil(why);
                    }
                    read_all.add(read);
                    documents.push(Document {
                        name: path.display().to_string(),
                        text: source.text().to_owned(),
                    });
                }
                Err(fault) => read_all.faults.push(*fault),
            }
        }
        Ok((self.build(read_all)?, documents))
    }

    /// The rules of texts that were read before.
    ///
    /// # Errors
    /// Every fault of them.
    pub fn of_documents(&self, documents: &[Document]) -> Result<RuleSet, Vec<Fault>> {
        let mut read_all = FileRules::default();
        for Document { name, text } in documents {
            let source = Source::new(name.as_str(), text.as_str());
            read_all.add(read(Path::new(name), &source));
        }
        self.build(read_all)
    }

    /// Puts the rules of all files together.
    fn build(&self, all: FileRules) -> Result<RuleSet, Vec<Fault>> {
        let FileRules {
            rules,
            mut faults,
            warnings,
        } = all;
        // Not the last: with quirks the last system rule says whether any is in force.
        let law = self.law.as_ref().map(|law| Rule::of_law(law, LAW));
        let rules = law.into_iter().chain(rules).collect();
        // The rules that could be read are compared with each other even when others are at fault.
        let set = RuleSet::build(rules, self.quirks);
        match set {
            Ok(set) if faults.is_empty() => Ok(set.with_warnings(warnings)),
            Ok(_) => Err(faults),
            Err(between) => {
                faults.extend(between);
                Err(faults)
            }
        }
    }

    fn fault(&self, value: String, allowed: &str, hint: &str) -> Vec<Fault> {
        vec![Fault::of_directory(&self.name(), value, allowed, hint)]
    }
}

impl RuleSource for DirectorySource {
    fn name(&self) -> String {
        self.directory.display().to_string()
    }

    fn load(&self) -> Result<RuleSet, Vec<Fault>> {
        Ok(self.load_documents()?.0)
    }
}

/// What one file holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileRules {
    /// The rules that are whole.
    pub rules: Vec<Rule>,
    /// Every fault.
    pub faults: Vec<Fault>,
    /// Odd, but taken.
    pub warnings: Vec<Fault>,
}

impl FileRules {
    fn add(&mut self, other: Self) {
        let Self {
            rules,
            faults,
            warnings,
        } = other;
        self.rules.extend(rules);
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }
}

/// Reads one rule file; its name tells the form, and of Sentinel's files the kind.
pub fn read(path: &Path, source: &Source) -> FileRules {
    let mut sink = Sink::new(source);
    let rules = if Form::of(path) == Some(Form::Sentinel) {
        let kind = sentinel::kind::of_name(&file_name(path));
        sentinel::read(&mut sink, kind)
    } else {
        file::read(&mut sink)
    };
    let (faults, warnings) = sink.finish();
    FileRules {
        rules,
        faults,
        warnings,
    }
}

impl FileRules {
    /// Takes what the file holds out of the messages.
    fn veil(&mut self, why: &str) {
        for fault in self.faults.iter_mut().chain(&mut self.warnings) {
            fault.veil(why);
        }
    }
}

/// Whether a file of the directory is read for rules. Names that begin with a dot are not: editors and
/// configuration tools keep their own files so.
pub(super) fn is_rule_file(path: &Path) -> bool {
    !file_name(path).starts_with('.') && Form::of(path).is_some()
}

/// How a rule file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Ours, TOML.
    Own,
    /// Sentinel's, JSON.
    Sentinel,
}

impl Form {
    fn of(path: &Path) -> Option<Self> {
        // Also .TOML: a file that somebody takes for rules must not be left out in silence.
        let named = |end: &str| {
            path.extension()
                .is_some_and(|own| own.eq_ignore_ascii_case(end))
        };
        if named("toml") {
            Some(Self::Own)
        } else {
            // A ConfigMap or a configuration centre has data ids for names.
            let data_id =
                path.extension().is_none() && sentinel::kind::is_data_id(&file_name(path));
            (named("json") || data_id).then_some(Self::Sentinel)
        }
    }
}

fn is_of_file(rule: &Rule) -> bool {
    rule.id != LAW || !matches!(rule.body, Body::System(_))
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
