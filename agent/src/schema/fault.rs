//! What is wrong in a file, said so that the operator can put it right.

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::source::{Source, shown};
use crate::plain::{Escaping, PlainText};

/// Faults of one file that are kept; the rest is only counted.
const FAULTS_MAX: usize = 500;

/// What stands where an option is missing.
const NOTHING: &str = "nothing";

/// Option of a fault where the text is no TOML or JSON.
pub(super) const SYNTAX: &str = "syntax";

/// Begins the hint of something that stands twice.
pub(super) const TWICE: &str = "stands twice";

/// Begins the hint of an option that is none.
pub(super) const UNKNOWN: &str = "no such option";

/// A file, or where something stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InFile {
    /// The path as it was given.
    pub file: Arc<str>,
    /// Where in it; `None` when the whole file is meant. In JSON its fields are beside `file`.
    #[serde(flatten)]
    pub point: Option<Point>,
}

/// Line and column of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl InFile {
    /// A file as a whole, or a directory.
    pub fn whole(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            point: None,
        }
    }
}

/// An option of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Its name in the file.
    pub name: &'static str,
    /// Where it stands, or the table where it is absent.
    pub place: InFile,
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, point } = self;
        let file = PlainText(file);
        match point {
            Some(Point { line, column }) => write!(f, "{file}:{line}:{column}"),
            None => write!(f, "{file}"),
        }
    }
}

/// One fault: place, option, value, what is allowed and a hint; it is told as one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// Where.
    #[serde(flatten)]
    pub place: InFile,
    /// Path of the option, such as `cpu.enter` or `flow[2].count`; `file` or `directory` for a whole one
    /// and `syntax` where the text is no TOML or JSON.
    pub option: String,
    /// What stands there, as it is written.
    pub value: String,
    /// What may stand there.
    pub allowed: String,
    /// What to do; empty where `allowed` says it all.
    pub hint: String,
}

impl Fault {
    /// A fault of a whole file.
    pub fn of_file(
        file: &str,
        value: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::at(InFile::whole(file), "file", value, allowed, hint)
    }

    /// A fault of a directory of files.
    pub fn of_directory(
        directory: &str,
        value: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::at(InFile::whole(directory), "directory", value, allowed, hint)
    }

    /// Takes out what repeats the file, and says why: only where and what is allowed stays.
    pub fn veil(&mut self, why: &str) {
        "rule".clone_into(&mut self.option);
        "(not shown)".clone_into(&mut self.value);
        why.clone_into(&mut self.hint);
    }

    /// A fault at a place that is known.
    pub fn at(
        place: InFile,
        option: impl Into<String>,
        value: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            place,
            option: option.into(),
            value: value.into(),
            allowed: allowed.into(),
            hint: hint.into(),
        }
    }
}

/// As a sentence: where, which option, what stands there or is missing, what may stand there, what to do.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            option,
            value,
            allowed,
            hint,
        } = self;
        // Names and values are those of others.
        let f = &mut Escaping(f);
        write!(f, "{place}: ")?;
        if option == SYNTAX {
            // At the end of a file no line is there to show.
            let colon = match value.as_str() {
                "" => "",
                _ if hint.starts_with(TWICE) => " ",
                _ => ": ",
            };
            return write!(f, "{value}{colon}{hint} (not valid {allowed})");
        }
        let mut hint = hint.as_str();
        if place.point.is_none() {
            f.write_str(value)?;
        } else if value == NOTHING {
            write!(f, "{}", Owned::of(option, "missing"))?;
            if !allowed.is_empty() {
                write!(f, " ({allowed})")?;
            }
            // The sentence says it already.
            return match hint {
                add if add.is_empty() || add.starts_with("add `") => Ok(()),
                hint => write!(f, "; {hint}"),
            };
        } else if let Some(more) = hint.strip_prefix(UNKNOWN) {
            // What it is set to does not matter.
            write!(f, "{}{more}", Owned::of(option, "unknown"))?;
            hint = "";
        } else if allowed.is_empty() {
            // It is about the option as such.
            write!(f, "{option}: {hint}")?;
            hint = "";
        } else {
            let is = if is_of_list(option) { ":" } else { " =" };
            write!(f, "{option}{is} {value}")?;
        }
        if !allowed.is_empty() {
            write!(f, "; allowed: {allowed}")?;
        }
        match hint {
            "" => Ok(()),
            _ => write!(f, "; {hint}"),
        }
    }
}

/// A table of a list, such as `flow[2]`, not one of its options.
fn is_of_list(option: &str) -> bool {
    option.ends_with(']') && !option.contains('.')
}

/// An option of a table that is missing or unknown, such as `degrade[0]: missing option "threshold"`.
struct Owned<'o> {
    table: Option<&'o str>,
    what: &'static str,
    key: &'o str,
}

impl<'o> Owned<'o> {
    fn of(option: &'o str, what: &'static str) -> Self {
        let (table, key) = match option.rsplit_once('.') {
            Some((table, key)) => (Some(table), key),
            None => (None, option),
        };
        Self { table, what, key }
    }
}

impl fmt::Display for Owned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, what, key } = self;
        if let Some(table) = table {
            write!(f, "{table}: ")?;
        }
        write!(f, "{what} option \"{key}\"")
    }
}

/// A fault as a sink keeps it.
#[derive(Debug)]
struct KeptFault {
    fault: Fault,
    /// Whether it is of which options a table has: one is missing there, or none is called so.
    of_shape: bool,
}

impl KeptFault {
    fn line(&self) -> Option<usize> {
        self.fault.place.point.map(|point| point.line)
    }
}

/// Collects the faults and warnings of one file.
#[derive(Debug)]
pub struct Sink<'s> {
    source: &'s Source,
    lenient: bool,
    of_sentinel: bool,
    faults: Vec<KeptFault>,
    left_off: usize,
    warnings: Vec<Fault>,
    strays: Vec<Fault>,
}

impl<'s> Sink<'s> {
    /// An empty one for a file.
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            lenient: false,
            of_sentinel: false,
            faults: Vec::new(),
            left_off: 0,
            warnings: Vec::new(),
            strays: Vec::new(),
        }
    }

    /// An empty one for a part of its file. It keeps keys that are no options apart from faults.
    #[must_use]
    pub fn lenient_part(&self) -> Self {
        Self {
            lenient: true,
            of_sentinel: self.of_sentinel,
            ..Self::new(self.source)
        }
    }

    /// The file is in Sentinel's form: values of another type than an option has are turned into it, patterns are
    /// Java's, ids are labels.
    pub fn set_of_sentinel(&mut self) {
        self.of_sentinel = true;
    }

    /// Whether the file is in Sentinel's form.
    pub fn is_of_sentinel(&self) -> bool {
        self.of_sentinel
    }

    /// The file it is for.
    pub fn source(&self) -> &'s Source {
        self.source
    }

    /// Adds a fault; its value is what stands on `span`.
    pub fn refuse(
        &mut self,
        span: &Range<usize>,
        option: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let fault = self.fault(span, option, allowed, hint);
        self.push(fault);
    }

    /// Adds a fault that is ready.
    pub fn push(&mut self, fault: Fault) {
        self.keep(fault, false);
    }

    /// Adds a fault about an option that a table has not, or that is none.
    pub(crate) fn push_of_shape(&mut self, fault: Fault) {
        self.keep(fault, true);
    }

    fn keep(&mut self, fault: Fault, of_shape: bool) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(KeptFault { fault, of_shape });
        } else {
            self.left_off = self.left_off.saturating_add(1);
        }
    }

    /// Adds a warning: odd, but the file is taken.
    pub fn warn(
        &mut self,
        span: &Range<usize>,
        option: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let warning = self.fault(span, option, allowed, hint);
        self.push_warning(warning);
    }

    /// Adds a fault about something that `span` should hold and does not.
    pub fn lack(
        &mut self,
        span: &Range<usize>,
        option: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let place = self.source.place(span.start);
        self.push_of_shape(Fault::at(place, option, NOTHING, allowed, hint));
    }

    /// Faults by now, those that are only counted included.
    pub fn fault_count(&self) -> usize {
        self.faults.len().saturating_add(self.left_off)
    }

    fn fault(
        &self,
        span: &Range<usize>,
        option: impl Into<String>,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Fault {
        let place = self.source.place(span.start);
        let value = match self.source.excerpt(span) {
            empty if empty.is_empty() => NOTHING.to_owned(),
            text => text,
        };
        Fault::at(place, shown(&option.into()), value, allowed, hint)
    }

    /// Whether an option, or a part of it, has a fault by now.
    pub(crate) fn has_fault(&self, option: &str) -> bool {
        let parts = self
            .faults
            .iter()
            .filter_map(|told| told.fault.option.strip_prefix(option));
        parts
            .into_iter()
            .any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// Adds a key that is no option.
    pub(crate) fn push_stray(&mut self, fault: Fault) {
        if self.lenient {
            self.strays.push(fault);
        } else {
            self.push_of_shape(fault);
        }
    }

    /// Takes the keys that are no options out of a lenient sink.
    pub fn take_strays(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.strays)
    }

    /// Adds a warning that is ready.
    pub fn push_warning(&mut self, warning: Fault) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(warning);
        }
    }

    /// Lines that have a fault by now.
    pub(crate) fn faulty_lines(&self) -> Vec<usize> {
        self.faults.iter().filter_map(KeptFault::line).collect()
    }

    /// Drops the faults from the one with number `from` that come of a guess of the parser: those that stand on
    /// one of these lines, and in these tables (ranges of lines) those of their shape.
    pub(crate) fn forget_guesses(&mut self, from: usize, lines: &[usize], tables: &[Range<usize>]) {
        let mut number = 0_usize;
        self.faults.retain(|told| {
            let is_guess = told.line().is_some_and(|line| {
                let in_table = || tables.iter().any(|table| table.contains(&line));
                lines.contains(&line) || (told.of_shape && in_table())
            });
            let keep = number < from || !is_guess;
            number = number.saturating_add(1);
            keep
        });
    }

    /// Faults and warnings in the order of the file.
    pub fn finish(self) -> (Vec<Fault>, Vec<Fault>) {
        let Self {
            source,
            lenient: _,
            of_sentinel: _,
            faults,
            left_off,
            mut warnings,
            strays: _,
        } = self;
        let mut faults: Vec<Fault> = faults.into_iter().map(|told| told.fault).collect();
        faults.sort_by(|a, b| a.place.cmp(&b.place));
        warnings.sort_by(|a, b| a.place.cmp(&b.place));
        if left_off > 0 {
            let value = format!("{left_off} more faults");
            faults.push(Fault::of_file(
                source.name(),
                value,
                "none",
                "fix the first ones and check again",
            ));
        }
        (faults, warnings)
    }
}
