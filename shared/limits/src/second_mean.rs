//! The mean of a signal over each second, as Sentinel takes its CPU share: a sample once a second, not one of a
//! moment.

use crate::number::double;

/// Time between two samples, ns.
const SAMPLE_NS: u64 = 1_000_000_000;

/// The mean since the last sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SecondMean {
    passed_ns: u64,
    /// The part of it in which the signal was measured.
    measured_ns: f64,
    /// The signal times that part, a share of ns.
    sum: f64,
}

impl SecondMean {
    /// Takes the value of a tick of `tick_ns`; when a second is over, the sample of it: `Some(None)` where the signal
    /// was not measured all the while.
    pub fn step(&mut self, value: Option<f64>, tick_ns: u64) -> Option<Option<f64>> {
        self.passed_ns = self.passed_ns.saturating_add(tick_ns);
        if let Some(value) = value {
            self.measured_ns += double(tick_ns);
            self.sum += value * double(tick_ns);
        }
        if self.passed_ns < SAMPLE_NS {
            return None;
        }
        let mean = (self.measured_ns > 0.0).then(|| self.sum / self.measured_ns);
        *self = Self::default();
        Some(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    #[test]
    fn field_l6_bursts_of_less_than_a_second_are_their_mean() {
        let mut mean = SecondMean::default();
        for second in 0..10 {
            for tick in 0..10 {
                let burst = if tick % 5 < 2 { 1.0 } else { 0.1 };
                let sample = mean.step(Some(burst), TICK_NS);
                assert_eq!(sample.is_some(), tick == 9, "second {second}");
                let Some(Some(cpu)) = sample else { continue };
                assert!((cpu - 0.46).abs() < 1e-9, "{cpu}");
            }
        }
    }

    #[test]
    fn a_second_without_a_measurement_is_not_measured() {
        let mut mean = SecondMean::default();
        assert_eq!(mean.step(None, 10 * TICK_NS), Some(None));
        assert_eq!(mean.step(Some(0.5), 5 * TICK_NS), None);
        assert_eq!(mean.step(None, 5 * TICK_NS), Some(Some(0.5)));
    }
}
