//! What a source gives at a time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use super::form::{FileRules, read};
use super::last_good::Document;
use crate::rule::{QuirksOption, RuleSet};
use crate::schema::fault::Fault;
use crate::schema::source::Source;

/// A whole set of rules as a source gave it, sound or not.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceSet {
    /// The kind of its source.
    pub kind: &'static str,
    /// The source, by its name.
    pub origin: String,
    /// Which version of the source it is: equal for equal texts, and mostly another one for others.
    pub version: u64,
    /// The rules that could be read, and what is wrong with the others.
    pub read: FileRules,
    /// The texts that the rules are from.
    pub documents: Vec<Document>,
}

impl SourceSet {
    /// The set of a source that has nothing.
    pub fn new(kind: &'static str, origin: impl Into<String>) -> Self {
        Self {
            kind,
            origin: origin.into(),
            version: DefaultHasher::new().finish(),
            read: FileRules::default(),
            documents: Vec::new(),
        }
    }

    /// The set of texts that were read before from this kind of source.
    pub fn of_documents(kind: &'static str, documents: Vec<Document>) -> Self {
        let mut set = Self::new(kind, kind);
        for document in documents {
            let source = Source::new(document.name.as_str(), document.text.as_str());
            let read = read(Path::new(&document.name), &source);
            set.add(document, read);
        }
        set
    }

    /// Adds a text and what was read of it.
    pub fn add(&mut self, document: Document, read: FileRules) {
        let mut hasher = DefaultHasher::new();
        (self.version, &document.name, &document.text).hash(&mut hasher);
        self.version = hasher.finish();
        self.read.add(read);
        self.documents.push(document);
    }

    /// Adds what is wrong with the source itself.
    #[must_use]
    pub fn with_faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.read.faults.extend(faults);
        self
    }

    /// Adds what is odd about the source itself.
    pub fn add_warnings(&mut self, warnings: impl IntoIterator<Item = Fault>) {
        self.read.warnings.extend(warnings);
    }

    /// The rules of this source alone.
    ///
    /// # Errors
    /// Every fault.
    pub fn build(self, quirks: QuirksOption) -> Result<RuleSet, Vec<Fault>> {
        self.read.build(quirks)
    }
}
