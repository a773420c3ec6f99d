//! Clocks of the bench, and medians.

use std::time::{Duration, Instant};

use tidegate_segment::board::ClockSource;

use crate::control::ClockWatch;

/// Longest time until the counter is calibrated.
const SETTLED: Duration = Duration::from_millis(300);

/// Time for one figure, where its rounds take longer: unoptimized, or beside a load.
const BUDGET: Duration = Duration::from_millis(1500);

/// Rounds that a figure is the median of at the least.
const ROUNDS_MIN: u32 = 7;

/// The clocks that can be measured here.
#[derive(Debug)]
pub(super) struct Clocks {
    /// What an agent would publish here.
    pub(super) best: ClockSource,
}

impl Clocks {
    /// Watches the counter as an agent does, until it is calibrated.
    pub(super) fn find() -> Self {
        let mut watch = ClockWatch::new();
        let begun = Instant::now();
        while begun.elapsed() < SETTLED {
            if let Some(best) = watch.tick() {
                return Self { best };
            }
            std::thread::park_timeout(SETTLED / 10);
        }
        let best = ClockSource::Monotonic;
        Self { best }
    }

    /// Name of the clock that a decision reads.
    pub(super) const fn name(&self) -> &'static str {
        match self.best {
            ClockSource::Counter(_) => "tsc",
            ClockSource::Monotonic => "monotonic",
        }
    }
}

/// Median time of a call over `rounds` rounds of `calls` calls each, or as many as there is time for, ns.
pub(super) fn per_call_ns(rounds: u32, calls: u32, call: impl FnMut()) -> f64 {
    spread_ns(rounds, calls, call).median
}

/// How long a call took, ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// In half of the rounds at most.
    pub(super) median: f64,
    /// In a tenth of the rounds at most: what it takes while nothing else uses the core. Two virtual
    /// processors may be one core, and what runs on the other then takes from this one.
    pub(super) quiet: f64,
}

/// Time of a call over `rounds` rounds of `calls` calls each, or as many as there is time for.
pub(super) fn spread_ns(rounds: u32, calls: u32, mut call: impl FnMut()) -> Spread {
    let mut times = Vec::new();
    let begun = Instant::now();
    for round in 0..rounds {
        if round >= ROUNDS_MIN && begun.elapsed() > BUDGET {
            break;
        }
        let start = Instant::now();
        for _call in 0..calls {
            call();
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }
    Spread {
        median: quantile(&mut times, 0.5),
        quiet: quantile(&mut times, 0.1),
    }
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
