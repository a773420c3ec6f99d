//! Clocks of the bench, and medians.

use std::time::{Duration, Instant};

use tidegate_segment::board::ClockSource;

use crate::own_core::{Place, Probe};
use tidegate_agent::control::ClockWatch;

/// Longest time until the counter is calibrated.
const SETTLED: Duration = Duration::from_millis(300);

/// Time for one figure, where its rounds take longer: unoptimized, or beside a load.
const BUDGET: Duration = Duration::from_millis(1500);

/// Rounds that a figure is the median of at the least.
const ROUNDS_MIN: u32 = 7;

/// Fewest rounds of one kind whose median tells something.
const TELLING: usize = 7;

/// One round in so many has to be on a core of its own before more of them are looked for.
const OWN_ONE_IN: usize = 20;

/// Rounds until those on a core of its own are counted again.
const ROUNDS_AT_ONCE: u32 = 64;

/// Longest time for one figure where the core is shared.
const WAIT_FOR_OWN: Duration = Duration::from_secs(10);

/// The clocks that can be measured here.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// What an agent would publish here.
    pub(crate) best: ClockSource,
}

impl Clocks {
    /// Watches the counter as an agent does, until it is calibrated.
    pub(crate) fn find() -> Self {
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
    pub(crate) const fn name(&self) -> &'static str {
        match self.best {
            ClockSource::Counter(_) => "tsc",
            ClockSource::Monotonic => "monotonic",
        }
    }
}

/// Median time of a call while the thread has its core to itself, ns; of all rounds where it never has.
pub(crate) fn per_call_ns(rounds: u32, calls: u32, call: impl FnMut()) -> f64 {
    spread_ns(rounds, calls, call).own
}

/// How long a call took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// Median of the rounds in which the thread had its core to itself, ns; of all where those were too few.
    pub(crate) own: f64,
    /// Median of those in which something else used the core, ns; `None` where those were too few.
    pub(crate) shared: Option<f64>,
    /// Share of the rounds in which it had the core to itself, before any were looked for; 0 to 1.
    pub(crate) own_share: f64,
}

/// Rounds measured so far: time of a call, ns, and the slower of the probes before and after. Which were on a core of
/// its own is told last, when the quickest probe is known best.
#[derive(Debug, Default)]
struct Rounds(Vec<(f64, Probe)>);

impl Rounds {
    fn measure(&mut self, calls: u32, mut call: impl FnMut()) {
        let before = Probe::take();
        let start = Instant::now();
        for _call in 0..calls {
            call();
        }
        let time_ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(calls);
        self.0.push((time_ns, before.or_slower(Probe::take())));
    }

    fn own(&self) -> usize {
        self.0
            .iter()
            .filter(|(_time_ns, probe)| probe.own())
            .count()
    }

    /// Times on a core of its own, and the others, ns.
    fn apart(&self) -> (Vec<f64>, Vec<f64>) {
        let (own, shared): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|(_time_ns, probe)| probe.own());
        let times = |rounds: Vec<(f64, Probe)>| {
            rounds
                .into_iter()
                .map(|(time_ns, _probe)| time_ns)
                .collect()
        };
        (times(own), times(shared))
    }
}

/// Time of a call over `rounds` rounds of `calls` calls each, or as many as there is time for. Where the core was
/// shared in nearly all of them, up to as many more follow in moments when it is not.
pub(crate) fn spread_ns(rounds: u32, calls: u32, mut call: impl FnMut()) -> Spread {
    let mut place = Place::first();
    let mut times = Rounds::default();
    let begun = Instant::now();
    for round in 0..rounds {
        if round >= ROUNDS_MIN && begun.elapsed() > BUDGET {
            break;
        }
        times.measure(calls, &mut call);
    }
    let measured = times.0.len();
    let own_share = share(times.own(), measured);
    let end = begun + WAIT_FOR_OWN;
    for round in 0..rounds {
        let is_enough = || times.own() >= measured / OWN_ONE_IN;
        if (round % ROUNDS_AT_ONCE == 0 && is_enough()) || !place.own_core(end) {
            break;
        }
        times.measure(calls, &mut call);
    }
    let (mut own, mut shared) = times.apart();
    if own.len() < TELLING {
        own.append(&mut shared);
    }
    Spread {
        own: quantile(&mut own, 0.5),
        shared: (shared.len() >= TELLING).then(|| quantile(&mut shared, 0.5)),
        own_share,
    }
}

#[expect(clippy::cast_precision_loss, reason = "some thousand rounds")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The value below which a share of the samples lies; NaN without samples.
pub(crate) fn quantile(samples: &mut [f64], share: f64) -> f64 {
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
    use std::hint::black_box;

    use super::{quantile, spread_ns};

    #[test]
    fn rounds_are_told_apart_and_none_is_lost() {
        let mut calls = 0_u32;
        let spread = spread_ns(40, 100, || calls = black_box(calls).saturating_add(1));
        assert!(spread.own > 0.0 && spread.own.is_finite(), "{spread:?}");
        assert!((0.0..=1.0).contains(&spread.own_share), "{spread:?}");
        assert!((4000..=8000).contains(&calls), "{calls}");
        assert_eq!(calls % 100, 0, "whole rounds");
    }

    #[test]
    fn a_quantile_is_a_sample() {
        let mut samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert!((quantile(&mut samples, 0.5) - 3.0).abs() < f64::EPSILON);
        assert!((quantile(&mut samples, 0.99) - 5.0).abs() < f64::EPSILON);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
