//! Throttling of one group: shares over the last quota periods, never since boot.

use std::collections::VecDeque;

use super::super::meter::to_f64;
use super::super::parse::quota::Quota;
use super::super::truth::Truth;
use crate::procfs::NoValue;

/// Fewest periods that make a share; with the usual period of 100 ms one second of a busy group.
const PERIODS_MIN: u64 = 10;
/// Samples that are remembered; 6 s of ticks of 100 ms.
const SAMPLES_MAX: usize = 60;
/// Older samples serve only if they are the last one: what was throttled before is no news.
const AGE_MAX_NS: u64 = 10_000_000_000;

/// The counters of `cpu.stat` that tell of throttling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) periods: u64,
    pub(super) throttled: u64,
    pub(super) throttled_ns: u64,
    /// Not told before kernel 5.14.
    pub(super) bursts: Result<u64, NoValue>,
}

impl Counts {
    /// Reads them in the units of the given column.
    ///
    /// # Errors
    /// The first of the fields that is missing: a file with use alone tells nothing of throttling.
    pub(super) fn read(bytes: &[u8], truth: &Truth) -> Result<Self, NoValue> {
        Ok(Self {
            periods: truth.periods.read(bytes)?,
            throttled: truth.throttled.read(bytes)?,
            throttled_ns: truth.throttled_time.read(bytes)?,
            bursts: truth.bursts.read(bytes),
        })
    }

    /// What each counter grew by since `earlier`, or `None` if one went back.
    fn since(self, earlier: Self) -> Option<Self> {
        let bursts = match (self.bursts, earlier.bursts) {
            (Ok(now), Ok(then)) => Ok(now.checked_sub(then)?),
            (Err(fault), _) | (_, Err(fault)) => Err(fault),
        };
        Some(Self {
            periods: self.periods.checked_sub(earlier.periods)?,
            throttled: self.throttled.checked_sub(earlier.throttled)?,
            throttled_ns: self.throttled_ns.checked_sub(earlier.throttled_ns)?,
            bursts,
        })
    }
}

/// The last samples, so that a share spans at least [`PERIODS_MIN`] periods at any tick.
#[derive(Debug)]
pub(super) struct Window {
    samples: VecDeque<(u64, Counts)>,
}

impl Window {
    /// A window without samples; its memory is set aside here.
    pub(super) fn new() -> Self {
        Self {
            samples: VecDeque::with_capacity(SAMPLES_MAX),
        }
    }

    /// Takes a sample and tells the growth over the shortest span with enough periods.
    ///
    /// # Errors
    /// [`NoValue::FirstSample`]; [`NoValue::TooFewPeriods`] while there are not enough; [`NoValue::WentBack`]
    /// for a counter that did, after which the window begins anew.
    pub(super) fn take(&mut self, now_ns: u64, counts: Counts) -> Result<Counts, NoValue> {
        let last = self.samples.back().map(|(_taken, last)| *last);
        if last.is_some_and(|last| counts.since(last).is_none()) {
            self.samples.clear();
            self.samples.push_back((now_ns, counts));
            return Err(NoValue::WentBack);
        }
        let fault = if last.is_none() {
            NoValue::FirstSample
        } else {
            NoValue::TooFewPeriods
        };
        let grown = self.shortest_span(now_ns, counts).ok_or(fault);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((now_ns, counts));
        grown
    }

    fn shortest_span(&self, now_ns: u64, counts: Counts) -> Option<Counts> {
        let newest_first = self.samples.iter().rev().enumerate();
        newest_first
            .take_while(|(age, (taken_ns, _))| {
                *age == 0 || now_ns.saturating_sub(*taken_ns) <= AGE_MAX_NS
            })
            .filter_map(|(_age, (_taken_ns, earlier))| counts.since(*earlier))
            .find(|grown| grown.periods >= PERIODS_MIN)
    }
}

/// Shares of one group's quota periods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Throttling {
    /// Periods that ran out of quota ÷ periods.
    pub(super) of_periods: f64,
    /// Run time that throttling took ÷ run time wanted.
    pub(super) of_time: f64,
    /// Periods that used saved-up quota ÷ periods.
    pub(super) bursts: Result<f64, NoValue>,
}

impl Throttling {
    /// The kernel sums throttled time over run queues, so that 16 of them held for 5 ms each count
    /// 80 ms. Against the clock that would be most of a period; against the run time that the quota
    /// gave in these periods, which is what the run queues shared, it is the share that was lost:
    /// `throttled ÷ (throttled + periods × quota)`.
    pub(super) fn of(grown: Counts, quota: Quota) -> Self {
        let periods = to_f64(grown.periods);
        let lost_ns = to_f64(grown.throttled_ns);
        let given_ns = periods * to_f64(quota.run_us) * 1000.0;
        Self {
            of_periods: (to_f64(grown.throttled) / periods).min(1.0),
            of_time: lost_ns / (lost_ns + given_ns),
            bursts: grown
                .bursts
                .map(|bursts| (to_f64(bursts) / periods).min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICK_NS: u64 = 100_000_000;

    fn counts(periods: u64, throttled: u64, throttled_ns: u64) -> Counts {
        Counts {
            periods,
            throttled,
            throttled_ns,
            bursts: Err(NoValue::NoField("nr_bursts")),
        }
    }

    fn two_cpus(grown: Counts) -> Throttling {
        Throttling::of(
            grown,
            Quota {
                run_us: 200_000,
                period_us: 100_000,
            },
        )
    }

    #[test]
    fn one_throttled_period_of_a_hundred_is_healthy() {
        let mut window = Window::new();
        let first = window.take(TICK_NS, counts(3076, 34, 7_000_000_000));
        assert_eq!(first, Err(NoValue::FirstSample));
        let grown = window
            .take(2 * TICK_NS, counts(3176, 35, 7_000_200_000))
            .unwrap();
        let share = two_cpus(grown);
        assert!((share.of_periods - 0.01).abs() < 1e-9);
        assert!(share.of_time < 0.001);
    }

    #[test]
    fn eighty_throttled_periods_with_forty_seconds_lost_is_starved() {
        let mut window = Window::new();
        window.take(TICK_NS, counts(3076, 34, 0)).unwrap_err();
        let grown = window
            .take(2 * TICK_NS, counts(3176, 114, 40_000_000_000))
            .unwrap();
        let share = two_cpus(grown);
        assert!((share.of_periods - 0.8).abs() < 1e-9);
        assert!((share.of_time - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn one_period_is_too_few_and_ticks_add_up() {
        let mut window = Window::new();
        for tick in 0..PERIODS_MIN {
            let read = window.take(tick * TICK_NS, counts(3076 + tick, 34 + tick, 0));
            assert!(read.is_err(), "tick {tick}: {read:?}");
        }
        let tick = PERIODS_MIN;
        let grown = window
            .take(tick * TICK_NS, counts(3076 + tick, 34 + tick, 0))
            .unwrap();
        assert_eq!((grown.periods, grown.throttled), (10, 10));
    }

    #[test]
    fn what_was_throttled_long_ago_is_not_told_again() {
        let mut window = Window::new();
        window.take(0, counts(0, 0, 0)).unwrap_err();
        window.take(TICK_NS, counts(20, 20, 0)).unwrap();
        let later = TICK_NS + AGE_MAX_NS + 1;
        assert_eq!(
            window.take(later, counts(20, 20, 0)),
            Err(NoValue::TooFewPeriods)
        );
    }

    #[test]
    fn a_counter_that_goes_back_begins_anew() {
        let mut window = Window::new();
        window.take(0, counts(100, 50, 0)).unwrap_err();
        assert_eq!(
            window.take(TICK_NS, counts(200, 40, 0)),
            Err(NoValue::WentBack)
        );
        assert_eq!(
            window
                .take(2 * TICK_NS, counts(220, 50, 0))
                .unwrap()
                .throttled,
            10
        );
    }

    #[test]
    fn a_file_with_use_alone_tells_nothing_of_throttling() {
        let truth = crate::procfs::Version::V2.truth();
        let read = Counts::read(b"usage_usec 1\nuser_usec 1\nsystem_usec 0\n", truth);
        assert_eq!(read, Err(NoValue::NoField("nr_periods")));
    }

    proptest! {
        #[test]
        fn shares_stay_between_none_and_all(
            samples in prop::collection::vec((0_u64..1 << 40, any::<u64>(), any::<u64>(), any::<u64>()), 1..99),
        ) {
            let mut window = Window::new();
            for (now_ns, periods, throttled, throttled_ns) in samples {
                if let Ok(grown) = window.take(now_ns, counts(periods, throttled, throttled_ns)) {
                    let share = two_cpus(grown);
                    prop_assert!((0.0..=1.0).contains(&share.of_periods));
                    prop_assert!((0.0..=1.0).contains(&share.of_time));
                }
            }
        }
    }
}
