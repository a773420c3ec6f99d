//! From counters to rates: what grew since the last sample, and in what time.

use crate::procfs::NoValue;

/// How much a counter grew, and in what time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Time between the two samples, never 0.
    pub(crate) elapsed_ns: u64,
    /// What the counter grew by, in its own unit.
    pub(crate) grown: u64,
}

impl Step {
    /// Growth per elapsed time for a counter in ns: CPUs in use, or a share of the time.
    pub(crate) fn rate(self) -> f64 {
        to_f64(self.grown) / to_f64(self.elapsed_ns)
    }
}

/// Remembers the last sample of a counter that only grows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meter {
    last: Option<(u64, u64)>,
}

impl Meter {
    /// Takes the counter's value at `now_ns`.
    ///
    /// # Errors
    /// The first sample has nothing to compare with; a counter that went back is taken as a new
    /// beginning and this sample is discarded; without time there is no rate.
    pub(crate) fn step(&mut self, now_ns: u64, count: u64) -> Result<Step, NoValue> {
        let Some((last_ns, last_count)) = self.last else {
            self.last = Some((now_ns, count));
            return Err(NoValue::FirstSample);
        };
        let elapsed_ns = now_ns.saturating_sub(last_ns);
        if elapsed_ns == 0 {
            return Err(NoValue::NoTimePassed);
        }
        self.last = Some((now_ns, count));
        let grown = count.checked_sub(last_count).ok_or(NoValue::WentBack)?;
        Ok(Step { elapsed_ns, grown })
    }
}

/// A counter as a number to compute with; exact up to 2^53, which 104 days in ns stay below.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_needs_two_samples_and_time_between_them() {
        let mut meter = Meter::default();
        assert_eq!(meter.step(10, 100), Err(NoValue::FirstSample));
        assert_eq!(meter.step(10, 100), Err(NoValue::NoTimePassed));
        assert_eq!(meter.step(9, 100), Err(NoValue::NoTimePassed));
        assert_eq!(
            meter.step(30, 110),
            Ok(Step {
                elapsed_ns: 20,
                grown: 10
            })
        );
    }

    #[test]
    fn a_step_back_costs_one_sample() {
        let mut meter = Meter::default();
        meter.step(10, 100).unwrap_err();
        assert_eq!(meter.step(20, 40), Err(NoValue::WentBack));
        assert_eq!(
            meter.step(30, 50),
            Ok(Step {
                elapsed_ns: 10,
                grown: 10
            })
        );
    }

    proptest! {
        #[test]
        fn any_two_samples_give_a_finite_rate_or_a_fault(a: (u64, u64), b: (u64, u64)) {
            let mut meter = Meter::default();
            prop_assert!(meter.step(a.0, a.1).is_err());
            if let Ok(step) = meter.step(b.0, b.1) {
                prop_assert!(step.rate().is_finite() && step.rate() >= 0.0);
            }
        }
    }
}
