//! Which resources a rule is for.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::java_pattern::translated;
use super::patterns::{Compiled, Patterns};
use crate::schema::settings::Section;

/// The resources of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RuleResource {
    /// The one of this name.
    Name(String),
    /// Every one whose whole name matches.
    Pattern(Pattern),
}

impl RuleResource {
    /// The name, or a compiled pattern; a pattern that does not compile is a fault.
    pub(crate) fn prove(name: &str, regex: bool, section: &mut Section<'_, '_>) -> Option<Self> {
        if !regex {
            return Some(Self::Name(name.to_owned()));
        }
        let compiled = if section.is_of_sentinel() {
            Pattern::of_java(name)
        } else {
            Pattern::new(name)
        };
        match compiled {
            Ok(pattern) => Some(Self::Pattern(pattern)),
            Err(error) => {
                let allowed = "a regular expression without look-around and back references, of \
                               at most 4 MiB when compiled, and 64 MiB with all other ones";
                section.refuse(&["resource"], allowed, error);
                None
            }
        }
    }

    /// Whether the rule is for the resource of this name.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Pattern(pattern) => pattern.matches(name),
        }
    }

    /// The name or the pattern as it is written.
    pub fn text(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Pattern(pattern) => pattern.text(),
        }
    }
}

/// A pattern for whole names. Matching takes time linear in the name.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As it is written.
    text: String,
    compiled: Arc<Compiled>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it, on one line.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::compile(text, text)
    }

    /// Compiles a pattern that is written for Java.
    ///
    /// # Errors
    /// What is wrong with it, or has no equal here.
    pub fn of_java(text: &str) -> Result<Self, String> {
        Self::compile(text, &translated(text)?)
    }

    fn compile(text: &str, meant: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            compiled: Patterns::all().compile(meant)?,
        })
    }

    /// The pattern as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.compiled.regex.is_match(name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.compiled.meant() == other.compiled.meant()
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.compiled.meant().hash(state);
    }
}
