//! What is wrong in a file, said so that the operator can put it right.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::source::{Source, shown};

/// Faults of one file that are kept; the rest is only counted.
const FAULTS_MAX: usize = 500;

/// What stands where an option is missing.
const NOTHING: &str = "nothing";

/// Where something stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The path as it was given.
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// An option of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Its name in the file.
    pub name: &'static str,
    /// Where it stands, or the table where it is absent.
    pub place: Place,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One fault: `file:line:col option value allowed hint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where; line 1, column 1 when the whole file is meant.
    #[serde(flatten)]
    pub place: Place,
    /// Path of the option, such as `cpu.enter` or `flow[2].count`; `file` for the whole file and
    /// `syntax` where the text is no TOML or JSON.
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
        let place = Place {
            file: file.into(),
            line: 1,
            column: 1,
        };
        Self::at(place, "file", value, allowed, hint)
    }

    /// A fault at a place that is known.
    pub fn at(
        place: Place,
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            option,
            value,
            allowed,
            hint,
        } = self;
        write!(f, "{place} {option} {value} (allowed: {allowed})")?;
        if hint.is_empty() {
            Ok(())
        } else {
            write!(f, " hint: {hint}")
        }
    }
}

/// Collects the faults and warnings of one file.
#[derive(Debug)]
pub struct Sink<'s> {
    source: &'s Source,
    lenient: bool,
    faults: Vec<Fault>,
    left_off: usize,
    warnings: Vec<Fault>,
}

impl<'s> Sink<'s> {
    /// An empty one for a file.
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            lenient: false,
            faults: Vec::new(),
            left_off: 0,
            warnings: Vec::new(),
        }
    }

    /// An empty one that tells keys which are no options apart from faults: they are warnings.
    pub fn lenient(source: &'s Source) -> Self {
        Self {
            lenient: true,
            ..Self::new(source)
        }
    }

    /// Whether unknown keys are warnings.
    pub fn is_lenient(&self) -> bool {
        self.lenient
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
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
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
        self.push(Fault::at(place, option, NOTHING, allowed, hint));
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
            .filter_map(|fault| fault.option.strip_prefix(option));
        parts
            .into_iter()
            .any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// Adds a warning that is ready.
    pub fn push_warning(&mut self, warning: Fault) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(warning);
        }
    }

    /// Lines that have a fault by now.
    pub(crate) fn faulty_lines(&self) -> Vec<usize> {
        self.faults.iter().map(|fault| fault.place.line).collect()
    }

    /// Drops the faults from the one with number `from` that stand on one of these lines: what is
    /// read there is a guess of the parser.
    pub(crate) fn forget_on(&mut self, from: usize, lines: &[usize]) {
        let mut number = 0_usize;
        self.faults.retain(|fault| {
            let keep = number < from || !lines.contains(&fault.place.line);
            number = number.saturating_add(1);
            keep
        });
    }

    /// Faults and warnings in the order of the file.
    pub fn finish(self) -> (Vec<Fault>, Vec<Fault>) {
        let Self {
            source,
            lenient: _,
            mut faults,
            left_off,
            mut warnings,
        } = self;
        faults.sort_by(|a, b| a.place.cmp(&b.place));
        warnings.sort_by(|a, b| a.place.cmp(&b.place));
        if left_off > 0 {
            let value = format!("{left_off} more faults");
            faults.push(Fault::of_file(
                source.name(),
                value,
                "none",
                "mend the first ones and check again",
            ));
        }
        (faults, warnings)
    }
}
