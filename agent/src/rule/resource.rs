//! Which resources a rule is for.

use std::hash::{Hash, Hasher};

use regex::{Regex, RegexBuilder};

use super::java_pattern::translated;
use crate::schema::settings::Section;

/// Most memory that a compiled pattern may take, in bytes. A repetition of up to 64 characters of any script takes 2 MiB.
const PATTERN_SIZE_MAX: usize = 4 << 20;

/// The resources of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The one of this name.
    Name(String),
    /// Every one whose whole name matches.
    Pattern(Pattern),
}

impl Resource {
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
                               at most 4 MiB when compiled";
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
    /// As our engine has it.
    meant: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it, on one line.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::compile(text, text.to_owned())
    }

    /// Compiles a pattern that is written for Java.
    ///
    /// # Errors
    /// What is wrong with it, or has no equal here.
    pub fn of_java(text: &str) -> Result<Self, String> {
        Self::compile(text, translated(text)?)
    }

    fn compile(text: &str, meant: String) -> Result<Self, String> {
        // Compiled alone first: a stray parenthesis must not close the group around it.
        let compile = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(PATTERN_SIZE_MAX).build()
        };
        compile(&meant)
            .and_then(|_alone| compile(&format!(r"\A(?:{meant})\z")))
            .map(|regex| Self {
                text: text.to_owned(),
                meant,
                regex,
            })
            .map_err(|error| last_line(&error))
    }

    /// The pattern as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

/// The engine draws the place of the error on lines above its message.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.meant == other.meant
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meant.hash(state);
    }
}
