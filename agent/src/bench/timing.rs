//! Clocks of the bench, and medians.

use std::path::Path;
use std::time::Instant;

use tidegate_segment::board::ClockSource;
use tidegate_segment::clock::{monotonic_ns, read_both};

use crate::clock::{Calibrator, CounterTrust, FIRST_CALIBRATION_NS};

/// The clocks that can be measured here.
#[derive(Debug)]
pub(super) struct Clocks {
    /// What an agent would publish here.
    pub(super) best: ClockSource,
}

impl Clocks {
    /// Looks which clocks there are, and why the counter is not among them.
    pub(super) fn find() -> (Self, Option<String>) {
        let trust = CounterTrust::new(Path::new("/proc"), Path::new("/sys"));
        if let Err(reason) = trust.check() {
            let best = ClockSource::Monotonic;
            return (Self { best }, Some(reason));
        }
        let mut calibrator = Calibrator::new(read_both());
        while !calibrator.due(monotonic_ns()) {
            std::thread::park_timeout(std::time::Duration::from_nanos(FIRST_CALIBRATION_NS / 4));
        }
        let best = calibrator.next(read_both());
        (Self { best }, None)
    }

    /// Name of the clock that a decision reads.
    pub(super) const fn name(&self) -> &'static str {
        match self.best {
            ClockSource::Counter(_) => "tsc",
            ClockSource::Monotonic => "monotonic",
        }
    }
}

/// Median time of a call over `rounds` rounds of `calls` calls each, ns.
pub(super) fn per_call_ns(rounds: u32, calls: u32, mut call: impl FnMut()) -> f64 {
    let mut times = Vec::new();
    for _round in 0..rounds {
        let start = Instant::now();
        for _call in 0..calls {
            call();
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }
    quantile(&mut times, 0.5)
}

/// The value below which a share of the samples lies; NaN without samples.
pub(super) fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a few thousand samples; a float turns into an integer saturating"
    )]
    let index = (share * last as f64).round() as usize;
    samples.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn a_quantile_is_a_sample() {
        let mut samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert!((quantile(&mut samples, 0.5) - 3.0).abs() < f64::EPSILON);
        assert!((quantile(&mut samples, 0.99) - 5.0).abs() < f64::EPSILON);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
