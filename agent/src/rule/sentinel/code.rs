//! Values as Sentinel writes them: numbers for words, numbers for ids, negative for unset.

use std::time::Duration;

use crate::rule::Amount;
use crate::rule::amount::Count;
use crate::schema::Value;
use crate::schema::kind::{Number, OptionWord, Scalar, Whole};

/// A number for a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code<W: 'static> {
    /// Each number and its word.
    pub(super) codes: &'static [(i64, W)],
    /// What any other number stands for, if it is allowed.
    pub(super) other: Option<W>,
}

impl<W: OptionWord + PartialEq> Scalar for Code<W> {
    type Output = W;
    fn allowed(&self) -> String {
        let one = |(code, word): &(i64, W)| format!("{code} ({})", word.word());
        let all: Vec<String> = self.codes.iter().map(one).collect();
        all.join(" | ")
    }
    fn parse(&self, value: &Value) -> Result<W, String> {
        let number = value.integer().ok_or("write a number")?;
        let found = self.codes.iter().find(|(code, _)| *code == number);
        let found = found.map(|(_, word)| *word).or(self.other);
        found.ok_or_else(String::new)
    }
    fn written(&self, value: &W) -> String {
        let found = self.codes.iter().find(|(_, word)| word == value);
        found.map(|(code, _)| code.to_string()).unwrap_or_default()
    }
    fn odd(&self, value: &Value) -> Option<String> {
        let number = value.integer()?;
        let known = self.codes.iter().any(|(code, _)| *code == number);
        let acts_as = self.other.filter(|_| !known)?;
        let hint = format!("it acts as {} ({})", self.written(&acts_as), acts_as.word());
        Some(hint)
    }
}

/// An id: a number or a text. 0 is what Sentinel's dashboard writes for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Id;

impl Scalar for Id {
    type Output = String;
    fn allowed(&self) -> String {
        "a whole number or a text".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<String, String> {
        match (value.text(), value.integer()) {
            (Some(text), _) => Ok(text.to_owned()),
            (None, Some(0)) => Ok(String::new()),
            (None, Some(number)) => Ok(number.to_string()),
            (None, None) => Err(String::new()),
        }
    }
    fn written(&self, value: &String) -> String {
        value.clone()
    }
}

/// A whole number up to this; what a negative one means depends on the field.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpTo(pub(super) i64);

/// Any number of 64 bits.
pub(super) const ANY: UpTo = UpTo(i64::MAX);

impl UpTo {
    const fn range(self) -> Whole<i64> {
        let Self(max) = self;
        Whole { min: i64::MIN, max }
    }
}

impl Scalar for UpTo {
    type Output = i64;
    fn allowed(&self) -> String {
        format!("a whole number of at most {}", self.0)
    }
    fn parse(&self, value: &Value) -> Result<i64, String> {
        self.range().parse(value)
    }
    fn written(&self, value: &i64) -> String {
        self.range().written(value)
    }
}

/// The largest `int`.
pub(super) const INT_MAX: i64 = 2_147_483_647;

/// A threshold. One below [`Count::LEAST`] stands for that, and one over [`Threshold::MOST`] for that: no verdict
/// can tell them apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold;

impl Threshold {
    /// 2^53.
    const MOST: f64 = 9_007_199_254_740_992.0;
}

impl Scalar for Threshold {
    type Output = Amount;
    fn allowed(&self) -> String {
        "0, or a number over it".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<Amount, String> {
        let any = Number {
            min: 0.0,
            max: f64::MAX,
        };
        let number = any.parse(value)?;
        let least = if number > 0.0 { Count::LEAST } else { 0.0 };
        Amount::new(number.clamp(least, Self::MOST)).ok_or_else(String::new)
    }
    fn written(&self, value: &Amount) -> String {
        Count.written(value)
    }
}

/// A mark of a system rule: a negative one is not set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark;

impl Mark {
    const RANGE: Number = Number {
        min: f64::MIN,
        max: 4_294_967_295.0,
    };
}

impl Scalar for Mark {
    type Output = f64;
    fn allowed(&self) -> String {
        format!(
            "a number of at most {}; a negative one is not set",
            Self::RANGE.max
        )
    }
    fn parse(&self, value: &Value) -> Result<f64, String> {
        Self::RANGE.parse(value)
    }
    fn written(&self, value: &f64) -> String {
        Self::RANGE.written(value)
    }
}

/// Seconds of a field; a negative one is none.
pub(super) fn seconds(field: i64) -> Duration {
    Duration::from_secs(u64::try_from(field).unwrap_or_default())
}

/// Milliseconds of a field; a negative one is none.
pub(super) fn millis(field: i64) -> Duration {
    Duration::from_millis(u64::try_from(field).unwrap_or_default())
}

/// The id of a field.
pub(super) fn id(field: Option<&String>) -> Option<String> {
    field.filter(|id| !id.is_empty()).cloned()
}
