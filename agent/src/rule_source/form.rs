//! How a text of rules is written, and what is read of it.

use std::path::Path;

use crate::rule::{QuirksOption, Rule, RuleSet, file, sentinel};
use crate::schema::fault::{Fault, Sink};
use crate::schema::source::Source;

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
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            rules,
            faults,
            warnings,
        } = other;
        self.rules.extend(rules);
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }

    /// Puts the rules together.
    ///
    /// # Errors
    /// Every fault, of each rule and between rules.
    pub fn build(self, quirks: QuirksOption) -> Result<RuleSet, Vec<Fault>> {
        let Self {
            rules,
            mut faults,
            warnings,
        } = self;
        // The rules that could be read are compared with each other even when others are at fault.
        match RuleSet::build(rules, quirks) {
            Ok(set) if faults.is_empty() => Ok(set.with_warnings(warnings)),
            Ok(_) => Err(faults),
            Err(between) => {
                faults.extend(between);
                Err(faults)
            }
        }
    }
}

impl FileRules {
    /// Takes what the file holds out of the messages.
    pub(super) fn veil(&mut self, why: &str) {
        for fault in self.faults.iter_mut().chain(&mut self.warnings) {
            fault.veil(why);
        }
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

/// Whether a file of a directory is read for rules. Names that begin with a dot are not: editors and
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

pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
