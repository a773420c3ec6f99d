//! The base time `RT0`, and what may teach it: an incident must not.
//!
//! A limit that is learnt from an outage protects nobody in the next one. So:
//!
//! * Only successes of a healthy tick teach, and a tick without a success teaches nothing.
//! * The base falls at once and rises slowly: at most to twice its value in [`DOUBLE_NS`]. A service that has
//!   become twice as slow for good is learnt within minutes; a slow hour of somebody behind it hardly at all.
//! * While a tick's successes take over [`SLOW_TIMES`] times the base the scope has an *incident*: such
//!   ticks teach neither base time nor capacity. It ends with the first tick whose successes are no longer that
//!   slow. After [`LASTING_NS`] without one it is the service that has changed, and the base follows at its slow pace.
//! * While far more is in flight than the limits allow, nothing is learnt upwards.

use super::number::{real, seconds};
use super::sample::Sample;

/// The base doubles in this time at most, ns.
const DOUBLE_NS: f64 = 240e9;

/// Times the base from which slow successes are an incident.
const SLOW_TIMES: f64 = 10.0;

/// An incident that has lasted for this long is a change of the service, ns.
const LASTING_NS: u64 = 600_000_000_000;

/// A late tick counts for this at most, ns.
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// Base time and the incident that would spoil it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct BaseTime {
    rt_s: Option<f64>,
    incident_ns: u64,
}

impl BaseTime {
    /// Takes the successes of a tick into account and says whether they may teach.
    pub(super) fn judge(&mut self, sample: &Sample) -> bool {
        let tick_ns = sample.tick_ns.min(LONGEST_TICK_NS);
        let slow = match (self.rt_s, sample.successes) {
            (None, _) => false,
            (Some(_), 0) => self.incident_ns > 0,
            (Some(base_s), successes) => {
                seconds(sample.rt_ns) / real(successes) > SLOW_TIMES * base_s
            }
        };
        self.incident_ns = if slow {
            self.incident_ns.saturating_add(tick_ns)
        } else {
            0
        };
        !slow || self.incident_ns >= LASTING_NS
    }

    /// Moves towards the least mean response time of healthy ticks, after a tick of `tick_ns` with a success.
    pub(super) fn follow(&mut self, least_s: f64, tick_ns: u64, may_rise: bool) {
        self.rt_s = Some(match self.rt_s {
            Some(base_s) if least_s > base_s && may_rise => least_s.min(base_s * growth(tick_ns)),
            Some(base_s) => base_s.min(least_s),
            None => least_s,
        });
    }

    /// Seconds; `None` before there is one.
    pub(super) fn rt_s(&self) -> Option<f64> {
        self.rt_s
    }

    /// How long successes have been slow out of all proportion, ns; 0 while they are not.
    pub(super) fn incident_ns(&self) -> u64 {
        self.incident_ns
    }
}

/// The most that the base grows by in a tick: `2^(tick / double)`.
fn growth(tick_ns: u64) -> f64 {
    libm::exp2(real(tick_ns.min(LONGEST_TICK_NS)) / DOUBLE_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    fn sample(successes: u64, rt_ms: u64) -> Sample {
        Sample {
            tick_ns: TICK_NS,
            successes,
            rt_ns: successes * rt_ms * 1_000_000,
            ..Sample::default()
        }
    }

    fn at(rt_s: f64) -> BaseTime {
        BaseTime {
            rt_s: Some(rt_s),
            incident_ns: 0,
        }
    }

    #[test]
    fn it_falls_at_once_and_doubles_in_four_minutes() {
        let mut base = at(0.05);
        base.follow(0.01, TICK_NS, true);
        assert_eq!(base.rt_s(), Some(0.01));
        for _tick in 0..2400 {
            base.follow(1.0, TICK_NS, true);
        }
        let doubled = base.rt_s().expect("it is known");
        assert!((doubled - 0.02).abs() < 0.0001, "{doubled}");
        base.follow(1.0, TICK_NS, false);
        assert_eq!(base.rt_s(), Some(doubled));
        // A machine that slept for a day has not seen a day of slow successes.
        base.follow(1.0, 86_400_000_000_000, true);
        assert!(base.rt_s().expect("it is known") < doubled * 1.01);
    }

    #[test]
    fn an_incident_lasts_until_successes_are_quick_again_or_ten_minutes_have_passed() {
        let mut base = at(0.05);
        assert!(base.judge(&sample(10, 400)));
        assert!(!base.judge(&sample(10, 600)));
        assert!(!base.judge(&sample(0, 0)), "no success ends nothing");
        assert_eq!(base.incident_ns(), 2 * TICK_NS);
        assert!(base.judge(&sample(1, 60)));
        assert_eq!(base.incident_ns(), 0);
        let taught = (0..6000)
            .filter(|_tick| base.judge(&sample(1, 5000)))
            .count();
        assert_eq!(taught, 1, "in the very last tick of ten minutes");
    }

    #[test]
    fn a_scope_without_a_base_learns_from_any_success() {
        let mut base = BaseTime::default();
        assert!(base.judge(&sample(10, 60_000)));
        base.follow(60.0, TICK_NS, false);
        assert_eq!(base.rt_s(), Some(60.0));
    }
}
