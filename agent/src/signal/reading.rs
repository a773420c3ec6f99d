//! One measured value, or the reason why there is none.

use tidegate_abi::signal::SignalId;

use crate::procfs::{Missing, NoValue};

/// One value of one signal: a finite number, or the reason why there is none. Never a made-up 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading(Result<f64, Missing>);

impl Reading {
    /// A reading without a value.
    pub const fn missing(source: &'static str, fault: NoValue) -> Self {
        Self(Err(Missing { source, fault }))
    }

    /// A reading from a computation; a number that is not finite becomes a missing value.
    pub fn new(source: &'static str, result: Result<f64, Missing>) -> Self {
        match result {
            Ok(value) if value.is_finite() => Self(Ok(value)),
            Ok(_not_finite) => Self::missing(source, NoValue::NotFinite),
            Err(missing) => Self(Err(missing)),
        }
    }

    /// The number, if it was measured.
    pub fn value(self) -> Option<f64> {
        self.0.ok()
    }

    /// The number, or why there is none.
    ///
    /// # Errors
    /// The source and what is wrong with it.
    pub fn get(self) -> Result<f64, Missing> {
        self.0
    }
}

/// The readings of one scope: one row for each signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Readings([Reading; SignalId::COUNT]);

impl Readings {
    /// A table in which nothing was measured yet.
    pub const fn new() -> Self {
        Self([Reading::missing("sampler", NoValue::NotSampled); SignalId::COUNT])
    }

    /// The reading of a signal.
    pub fn get(&self, id: SignalId) -> Reading {
        let unknown = Reading::missing("sampler", NoValue::NotSampled);
        self.0
            .get(usize::from(id as u8))
            .copied()
            .unwrap_or(unknown)
    }

    /// The number of a signal, if it was measured.
    pub fn value(&self, id: SignalId) -> Option<f64> {
        self.get(id).value()
    }

    /// Puts a reading in; not-finite numbers become missing values.
    pub fn set(&mut self, id: SignalId, result: Result<f64, Missing>) {
        if let Some(row) = self.0.get_mut(usize::from(id as u8)) {
            *row = Reading::new(id.name(), result);
        }
    }

    /// Every signal with its reading, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (SignalId, Reading)> + '_ {
        SignalId::ALL.iter().copied().zip(self.0.iter().copied())
    }
}

impl Default for Readings {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_finite_is_not_a_value() {
        let mut readings = Readings::new();
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            readings.set(SignalId::Cpu, Ok(number));
            assert_eq!(readings.get(SignalId::Cpu).value(), None);
        }
        readings.set(SignalId::Cpu, Ok(0.5));
        assert_eq!(readings.value(SignalId::Cpu), Some(0.5));
    }

    #[test]
    fn before_the_first_sample_nothing_is_a_value_and_each_says_why() {
        for (_id, reading) in Readings::new().iter() {
            let missing = reading.get().unwrap_err();
            assert_eq!(missing.to_string(), "sampler: not sampled yet");
        }
    }
}
