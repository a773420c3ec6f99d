//! Numbers of rules that compare and hash by value.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::{Value as Json, json};

use crate::schema::Value;
use crate::schema::kind::{Number, Scalar};

/// A finite number that is not negative.
#[derive(Debug, Clone, Copy, Default)]
pub struct Amount(f64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);
    /// The whole of a share.
    pub const ONE: Self = Self(1.0);

    /// Checks a number.
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero turns a negative zero into zero, so that equal amounts have equal bits.
        (number.is_finite() && number >= 0.0).then_some(Self(number + 0.0))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Amount {
    /// The whole part; `u32::MAX` for anything over it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative, and a cast from a float stops at the largest value"
    )]
    pub const fn whole(self) -> u32 {
        self.0 as u32
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Amount {}

impl Hash for Amount {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A limit: nothing at all, or at least a millionth.
///
/// The bounds keep every product of a decision in range: a pacing cost `10^9 / count` ns stays
/// under 12 days, a warm-up bucket `period × count` of a day's period under 2^53.
#[derive(Debug, Clone, Copy)]
pub struct Count;

impl Count {
    /// The least that is not nothing.
    pub(super) const LEAST: f64 = 0.000_001;
    const MOST: f64 = 4_294_967_295.0;
}

impl Scalar for Count {
    type Output = Amount;
    fn allowed(&self) -> String {
        format!("0, or a number from {} to {}", Self::LEAST, Self::MOST)
    }
    fn parse(&self, value: &Value) -> Result<Amount, String> {
        let range = Number {
            min: 0.0,
            max: Self::MOST,
        };
        let number = range.parse(value)?;
        let tiny = number > 0.0 && number < Self::LEAST;
        Amount::new(number)
            .filter(|_| !tiny)
            .ok_or_else(String::new)
    }
    fn written(&self, value: &Amount) -> String {
        Number::RATIO.written(&value.get())
    }
    fn json_schema(&self) -> Json {
        json!({"type": "number", "minimum": 0, "maximum": Self::MOST})
    }
}

/// A share from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub struct Fraction;

impl Scalar for Fraction {
    type Output = Amount;
    fn allowed(&self) -> String {
        Scalar::allowed(&Number::RATIO)
    }
    fn parse(&self, value: &Value) -> Result<Amount, String> {
        let number = Number::RATIO.parse(value)?;
        Amount::new(number).ok_or_else(String::new)
    }
    fn written(&self, value: &Amount) -> String {
        Number::RATIO.written(&value.get())
    }
    fn json_schema(&self) -> Json {
        Scalar::json_schema(&Number::RATIO)
    }
}
