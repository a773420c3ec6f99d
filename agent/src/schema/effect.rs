//! When an option that a file gives has no effect, so that nobody takes it for a limit that holds.
//!
//! A table of options answers for each of them, in one list beside them ([`Effects`]); a test compares the list with
//! the options. What has no effect is a warning: it is taken, and said wherever warnings are.

use super::Value;
use super::settings::Section;

/// Why an option has no effect: when it would have one, and what that means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// What may stand there, or with what.
    pub allowed: &'static str,
    /// What it means as it stands.
    pub hint: String,
}

impl Idle {
    /// Says when an option would have an effect, and why it has none.
    pub(crate) fn new(allowed: &'static str, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        Self { allowed, hint }
    }

    /// The same where `idle` holds.
    pub(crate) fn when(idle: bool, allowed: &'static str, hint: &str) -> Option<Self> {
        idle.then(|| Self::new(allowed, hint))
    }
}

/// The answer for one option.
#[derive(Debug)]
pub struct OptionEffect<O: 'static> {
    /// Key of the option.
    pub key: &'static str,
    /// Why it has no effect; `None` where it has one.
    pub lacking: fn(&O) -> Option<Idle>,
}

impl<O> OptionEffect<O> {
    /// An option that may have no effect.
    pub(crate) const fn new(key: &'static str, lacking: fn(&O) -> Option<Idle>) -> Self {
        Self { key, lacking }
    }

    /// An option that has an effect whatever the others are, or whose values without one are refused.
    pub(crate) const fn always(key: &'static str) -> Self {
        Self {
            key,
            lacking: |_options| None,
        }
    }
}

/// Options that answer for their effect.
pub trait Effects: Sized + 'static {
    /// An answer for each option.
    const EFFECTS: &'static [OptionEffect<Self>];

    /// Warns of each option of the section that has no effect.
    fn warn(&self, section: &mut Section<'_, '_>) {
        for effect in Self::EFFECTS {
            if !section.gives(effect.key) {
                continue;
            }
            if let Some(Idle { allowed, hint }) = (effect.lacking)(self) {
                section.warn(effect.key, allowed, hint);
            }
        }
    }
}

/// Whether a value asks for something: an option that says "no" or "nothing" asks for none.
pub(crate) const fn asks(value: &Value) -> bool {
    match value {
        Value::Flag(flag) => *flag,
        Value::Integer(number) => *number != 0,
        Value::Number(number) => *number != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Table(members) => !members.is_empty(),
        Value::Null => false,
        Value::Other(_) => true,
    }
}
