//! System rules as Sentinel has them: plain marks on inbound work.
//!
//! The adaptive law is in [`crate::law`].

use crate::quirks::Quirks;

/// The marks of a system rule, or of all of them together; `None` = not set.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SystemThresholds {
    /// Inbound passes per second.
    pub qps: Option<f64>,
    /// Inbound calls in flight; so many and one more may run.
    pub concurrency: Option<f64>,
    /// Average response time, ms.
    pub average_rt_ms: Option<f64>,
    /// Load average of the last minute.
    pub load: Option<f64>,
    /// Share of the CPU, 0 to 1.
    pub cpu: Option<f64>,
}

/// What was measured, for all inbound calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemReadings {
    /// Passes in the present window of a second.
    pub passed: u32,
    /// Calls in flight.
    pub inflight: u32,
    /// See [`crate::statistics::average_rt_ms`].
    pub average_rt_ms: f64,
    /// See [`crate::statistics::least_rt_ms`].
    pub least_rt_ms: u64,
    /// See [`crate::statistics::max_success_qps`].
    pub max_success_qps: f64,
    /// Load average; `None` or not finite = not measured, which refuses nobody.
    pub load: Option<f64>,
    /// Share of the CPU; `None` or not finite = not measured.
    pub cpu: Option<f64>,
}

/// Which mark was passed; the order is that of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemThreshold {
    /// [`SystemThresholds::qps`].
    Qps,
    /// [`SystemThresholds::concurrency`].
    Concurrency,
    /// [`SystemThresholds::average_rt_ms`].
    AverageRt,
    /// [`SystemThresholds::load`], with more in flight than the machine has shown to carry.
    Load,
    /// [`SystemThresholds::cpu`].
    Cpu,
}

impl SystemThresholds {
    /// Merges rules: the least of each field. A field below 0 or not a number is not set, nor is a
    /// CPU share over 1. With quirks the last rule alone decides whether anything is in force: it
    /// must set a field. `None` = nothing is checked.
    pub fn merged(rules: impl IntoIterator<Item = Self>, quirks: Quirks) -> Option<Self> {
        let (all, last) = rules
            .into_iter()
            .map(Self::checked)
            .fold((Self::default(), Self::default()), |(all, _), rule| {
                (all.least(rule), rule)
            });
        let decisive = if quirks.wanted() { last } else { all };
        (decisive != Self::default()).then_some(all)
    }

    fn checked(self) -> Self {
        let set = |field: Option<f64>| field.filter(|value| *value >= 0.0);
        Self {
            qps: set(self.qps),
            concurrency: set(self.concurrency),
            average_rt_ms: set(self.average_rt_ms),
            load: set(self.load),
            cpu: set(self.cpu).filter(|share| *share <= 1.0),
        }
    }

    fn least(self, other: Self) -> Self {
        let least = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Self {
            qps: least(self.qps, other.qps),
            concurrency: least(self.concurrency, other.concurrency),
            average_rt_ms: least(self.average_rt_ms, other.average_rt_ms),
            load: least(self.load, other.load),
            cpu: least(self.cpu, other.cpu),
        }
    }

    /// The first mark that an inbound request of `n` passes; `None` admits it.
    #[inline]
    pub fn refuses(&self, now: &SystemReadings, n: u32) -> Option<SystemThreshold> {
        let passed = f64::from(now.passed) + f64::from(n);
        let over = |value: f64, mark: Option<f64>| mark.is_some_and(|mark| value > mark);
        let sampled = |value: Option<f64>, mark| {
            value.is_some_and(|value| value.is_finite() && over(value, mark))
        };
        if over(passed, self.qps) {
            Some(SystemThreshold::Qps)
        } else if over(f64::from(now.inflight), self.concurrency) {
            Some(SystemThreshold::Concurrency)
        } else if over(now.average_rt_ms, self.average_rt_ms) {
            Some(SystemThreshold::AverageRt)
        } else if sampled(now.load, self.load) && now.is_crowded() {
            Some(SystemThreshold::Load)
        } else if sampled(now.cpu, self.cpu) {
            Some(SystemThreshold::Cpu)
        } else {
            None
        }
    }
}

impl SystemReadings {
    /// More in flight than the best rate times the best response time.
    fn is_crowded(&self) -> bool {
        let carried = carried(self.max_success_qps, self.least_rt_ms);
        self.inflight > 1 && f64::from(self.inflight) > carried
    }
}

/// Requests that are in flight at the best rate, each for the least response time (Little's law).
pub(crate) fn carried(max_success_qps: f64, least_rt_ms: u64) -> f64 {
    max_success_qps * crate::number::double(least_rt_ms) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: SystemReadings = SystemReadings {
        passed: 0,
        inflight: 0,
        average_rt_ms: 0.0,
        least_rt_ms: 5_000,
        max_success_qps: 2.0,
        load: None,
        cpu: None,
    };

    fn cpu(share: f64) -> SystemThresholds {
        SystemThresholds {
            cpu: Some(share),
            ..SystemThresholds::default()
        }
    }

    #[test]
    fn each_mark_is_passed_above_itself() {
        let marks = SystemThresholds {
            qps: Some(10.0),
            concurrency: Some(2.0),
            average_rt_ms: Some(30.0),
            load: Some(0.0),
            cpu: Some(0.5),
        };
        let refuses = |now: SystemReadings| marks.refuses(&now, 1);
        assert_eq!(refuses(SystemReadings { passed: 9, ..IDLE }), None);
        assert_eq!(
            refuses(SystemReadings { passed: 10, ..IDLE }),
            Some(SystemThreshold::Qps)
        );
        assert_eq!(
            refuses(SystemReadings {
                inflight: 2,
                ..IDLE
            }),
            None
        );
        assert_eq!(
            refuses(SystemReadings {
                inflight: 3,
                ..IDLE
            }),
            Some(SystemThreshold::Concurrency)
        );
        let slow = |average_rt_ms| SystemReadings {
            average_rt_ms,
            ..IDLE
        };
        assert_eq!(refuses(slow(30.0)), None);
        assert_eq!(refuses(slow(30.1)), Some(SystemThreshold::AverageRt));
        let busy = |cpu| SystemReadings {
            cpu: Some(cpu),
            ..IDLE
        };
        assert_eq!(refuses(busy(0.5)), None);
        assert_eq!(refuses(busy(0.51)), Some(SystemThreshold::Cpu));
        assert_eq!(refuses(busy(f64::INFINITY)), None);
        assert_eq!(refuses(busy(f64::NAN)), None);
    }

    #[test]
    fn load_refuses_only_what_the_machine_does_not_carry() {
        let marks = SystemThresholds {
            load: Some(3.0),
            ..SystemThresholds::default()
        };
        let now = |inflight, least_rt_ms| SystemReadings {
            inflight,
            least_rt_ms,
            load: Some(3.5),
            ..IDLE
        };
        assert_eq!(marks.refuses(&now(1, 1), 1), None);
        assert_eq!(marks.refuses(&now(2, 1), 1), Some(SystemThreshold::Load));
        assert_eq!(marks.refuses(&now(2, 1_000), 1), None);
        assert_eq!(
            marks.refuses(&now(3, 1_000), 1),
            Some(SystemThreshold::Load)
        );
        let calm = SystemReadings {
            load: Some(-1.0),
            ..now(9, 1)
        };
        assert_eq!(marks.refuses(&calm, 1), None);
    }

    #[test]
    fn rules_merge_to_the_least_of_each_field() {
        let merged = |quirks| SystemThresholds::merged([cpu(0.9), cpu(0.7), cpu(-1.0)], quirks);
        assert_eq!(merged(Quirks::None), Some(cpu(0.7)));
        assert_eq!(merged(Quirks::Sentinel), None);
        assert_eq!(
            SystemThresholds::merged([cpu(1.1), cpu(f64::NAN)], Quirks::None),
            None
        );
        assert_eq!(
            SystemThresholds::merged([cpu(-1.0), cpu(0.0)], Quirks::Sentinel),
            Some(cpu(0.0))
        );
        assert_eq!(SystemThresholds::merged([], Quirks::None), None);
    }
}
