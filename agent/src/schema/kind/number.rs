//! Numbers, durations, yes and no.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Scalar, Value, quoted};

/// true or false.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

impl Scalar for Flag {
    type Output = bool;
    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
    fn parse(&self, value: &Value) -> Result<bool, String> {
        if let Value::Flag(flag) = value {
            return Ok(*flag);
        }
        let hint = value.text().map(|_| "write true or false without quotes");
        Err(hint.unwrap_or_default().to_owned())
    }
    fn written(&self, value: &bool) -> String {
        value.to_string()
    }
    fn json_schema(&self) -> Json {
        json!({"type": "boolean"})
    }
}

/// A whole number in a range, both ends included.
#[derive(Debug, Clone, Copy)]
pub struct Whole<T> {
    /// The least.
    pub min: T,
    /// The most.
    pub max: T,
}

impl<T: Copy + PartialOrd + Display + Serialize + TryFrom<i64>> Scalar for Whole<T> {
    type Output = T;
    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }
    fn parse(&self, value: &Value) -> Result<T, String> {
        let Value::Integer(number) = value else {
            let is_fraction = value
                .number()
                .is_some_and(|number| number.fract() != 0.0 && number.is_finite());
            let without = || "write it without a fraction".to_owned();
            return Err(is_fraction
                .then(without)
                .unwrap_or_else(|| number_hint(value)));
        };
        T::try_from(*number)
            .ok()
            .filter(|number| (self.min..=self.max).contains(number))
            .ok_or_else(String::new)
    }
    fn written(&self, value: &T) -> String {
        value.to_string()
    }
    fn json_schema(&self) -> Json {
        json!({"type": "integer", "minimum": self.min, "maximum": self.max})
    }
}

/// A finite number in a range, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Number {
    /// A share; 1 is the whole.
    pub const RATIO: Self = Self { min: 0.0, max: 1.0 };
}

impl Scalar for Number {
    type Output = f64;
    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.min, self.max)
    }
    fn parse(&self, value: &Value) -> Result<f64, String> {
        let is_share = *self == Self::RATIO;
        if let Some(percent) = value.text().and_then(percent).filter(|_| is_share) {
            return Err(share_hint(percent));
        }
        let number = finite(value)?;
        if (self.min..=self.max).contains(&number) {
            // Adding zero turns a negative zero into zero.
            Ok(number + 0.0)
        } else if is_share && (1.0..=100.0).contains(&number) {
            Err(share_hint(number))
        } else {
            Err(String::new())
        }
    }
    fn written(&self, value: &f64) -> String {
        toml::Value::Float(*value).to_string()
    }
    fn json_schema(&self) -> Json {
        json!({"type": "number", "minimum": self.min, "maximum": self.max})
    }
}

/// A share, written in percent; bounds are in percent too, both included.
#[derive(Debug, Clone, Copy)]
pub struct Percent {
    /// The least, %.
    pub min: f64,
    /// The most, %.
    pub max: f64,
}

impl Scalar for Percent {
    type Output = f64;
    fn allowed(&self) -> String {
        let Self { min, max } = self;
        format!("a share from \"{min}%\" to \"{max}%\"")
    }
    fn parse(&self, value: &Value) -> Result<f64, String> {
        let hint = "write it in percent and in quotes, such as \"2%\"";
        let percent = value.text().and_then(percent).ok_or(hint)?;
        if (self.min..=self.max).contains(&percent) {
            Ok(percent / 100.0)
        } else {
            Err(String::new())
        }
    }
    fn written(&self, value: &f64) -> String {
        // Three places are more than anybody writes, and hide what 0.07 * 100 is off by.
        let percent = (value * 1e5).round() / 1e3;
        quoted(&format!("{percent}%"))
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "pattern": "^[0-9.]+ *%$"})
    }
}

/// A number of the file as f64.
///
/// # Errors
/// A hint when it is none or not finite.
fn finite(value: &Value) -> Result<f64, String> {
    let number = value.number().ok_or_else(|| number_hint(value))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err("it must be finite".to_owned())
    }
}

/// How to write the number that a text holds.
fn number_hint(value: &Value) -> String {
    let Some(text) = value.text() else {
        return String::new();
    };
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => return "write it without quotes".to_owned(),
        Ok(_not_finite) => return "it must be finite, and without quotes".to_owned(),
        Err(_no_number) => {}
    }
    let digits = text.split(|one: char| !one.is_ascii_digit()).next();
    match digits.filter(|digits| !digits.is_empty()) {
        Some(digits) => format!("write the number alone, without quotes and unit: {digits}"),
        None => "write a number, without quotes".to_owned(),
    }
}

/// The number before a percent sign.
fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.trim_end().parse().ok()
}

/// How a share is written that was given in percent.
fn share_hint(percent: f64) -> String {
    // Three places of the percent are more than anybody writes.
    let share = (percent * 1e3).round() / 1e5;
    format!("a share of 1: write {share}")
}

/// A duration in a range, both ends included, written with its unit.
#[derive(Debug, Clone, Copy)]
pub struct DurationRange {
    /// The least.
    pub min: Duration,
    /// The most.
    pub max: Duration,
}

impl DurationRange {
    /// A range of milliseconds.
    pub const fn ms(min: u64, max: u64) -> Self {
        Self {
            min: Duration::from_millis(min),
            max: Duration::from_millis(max),
        }
    }
}

impl Scalar for DurationRange {
    type Output = Duration;
    fn allowed(&self) -> String {
        let [min, max] = [self.min, self.max].map(humantime::format_duration);
        format!("a duration from \"{min}\" to \"{max}\"")
    }
    fn parse(&self, value: &Value) -> Result<Duration, String> {
        let text = value
            .text()
            .ok_or("write it with its unit in quotes, such as \"100ms\"")?;
        let duration = humantime::parse_duration(text)
            .map_err(|error| format!("{error}; units are us, ms, s, m, h"))?;
        if (self.min..=self.max).contains(&duration) {
            Ok(duration)
        } else {
            Err(String::new())
        }
    }
    fn written(&self, value: &Duration) -> String {
        quoted(&humantime::format_duration(*value).to_string())
    }
    fn json_schema(&self) -> Json {
        json!({"type": "string", "pattern": "^[0-9]"})
    }
}
