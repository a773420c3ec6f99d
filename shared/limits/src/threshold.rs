//! A plain threshold of an operator, with two marks so that it does not flap.
//!
//! ```text
//!              value >= enter, all along `sustain_ns`,
//!              and the hour's budget of changes allows it
//!            ┌─────────────────────────────────────────┐
//!            │                                         ▼
//!        ┌───────┐                                 ┌────────┐
//!        │ quiet │                                 │ active │
//!        └───────┘                                 └────────┘
//!            ▲                                         │
//!            └─────────────────────────────────────────┘
//!              N healthy samples in a row (value < leave) and held for
//!              `hold_ns`, or nothing measured for `blind_ns`
//! ```
//!
//! A sample that is not measured or not finite changes no count: it neither enters nor is healthy.

use crate::change_budget::ChangeBudget;
use crate::healthy_run::{self, HealthyRun};

/// Settings of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThresholdSettings {
    /// At or over this value a sample speaks for entering.
    pub enter: f64,
    /// Under this value a sample is healthy.
    pub leave: f64,
    /// How long the value must stay over `enter`, ns; 0 enters with the first sample.
    pub sustain_ns: u64,
    /// Least time between entering and leaving, ns.
    pub hold_ns: u64,
    /// An active threshold whose signal is not measured for this long is left, ns.
    pub blind_ns: u64,
    /// Most changes in any hour. Leaving is always allowed, so an entry needs room for two.
    pub most_changes_per_hour: u32,
    /// How leaving counts healthy samples.
    pub healthy: healthy_run::HealthyRunSettings,
}

impl ThresholdSettings {
    /// The CPU threshold: it acts only on what lasts, for a short peak harms nobody.
    pub fn cpu() -> Self {
        Self {
            sustain_ns: 2_000_000_000,
            ..Self::marks(0.85, 0.75)
        }
    }

    /// The threshold on load average per effective CPU, which is an average already.
    pub fn load() -> Self {
        Self::marks(1.0, 0.8)
    }

    /// These two marks, acting at once, and the default of the rest.
    pub fn marks(enter: f64, leave: f64) -> Self {
        Self {
            enter,
            leave,
            sustain_ns: 0,
            hold_ns: 500_000_000,
            blind_ns: 5_000_000_000,
            most_changes_per_hour: 12,
            healthy: healthy_run::HealthyRunSettings::default(),
        }
    }

    /// The same threshold with both marks lower by `shift`.
    #[must_use]
    pub fn lowered(self, shift: f64) -> Self {
        Self {
            enter: self.enter - shift,
            leave: self.leave - shift,
            ..self
        }
    }
}

/// State of a threshold.
#[derive(Debug, Clone, Default)]
pub struct Threshold {
    now_ns: u64,
    active_since_ns: Option<u64>,
    over_ns: u64,
    blind_ns: u64,
    run: HealthyRun,
    budget: ChangeBudget,
}

impl Threshold {
    /// Takes the sample of a tick of `tick_ns` and says whether the threshold is active after it.
    pub fn step(&mut self, value: Option<f64>, tick_ns: u64, settings: &ThresholdSettings) -> bool {
        self.now_ns = self.now_ns.saturating_add(tick_ns);
        match (
            value.filter(|value| value.is_finite()),
            self.active_since_ns,
        ) {
            (Some(value), None) => self.watch(value, tick_ns, settings),
            (Some(value), Some(since_ns)) => self.recover(value, since_ns, tick_ns, settings),
            (None, None) => {}
            (None, Some(_)) => self.wait_blind(tick_ns, settings),
        }
        self.is_active()
    }

    /// Time until it may become active again, where its value asks for it and the hour has had its changes.
    pub fn withheld_ns(&self, settings: &ThresholdSettings) -> Option<u64> {
        let asks = !self.is_active() && self.over_ns >= settings.sustain_ns.max(1);
        let most = settings.most_changes_per_hour;
        asks.then(|| self.budget.wait_ns(self.now_ns, most))
            .flatten()
    }

    /// Whether the threshold is active.
    pub fn is_active(&self) -> bool {
        self.active_since_ns.is_some()
    }

    fn watch(&mut self, value: f64, tick_ns: u64, settings: &ThresholdSettings) {
        if value < settings.enter {
            self.over_ns = 0;
            return;
        }
        self.over_ns = self.over_ns.saturating_add(tick_ns);
        let most = settings.most_changes_per_hour;
        if self.over_ns >= settings.sustain_ns && self.budget.has_room(self.now_ns, most) {
            self.enter(settings);
        }
    }

    fn recover(&mut self, value: f64, since_ns: u64, tick_ns: u64, settings: &ThresholdSettings) {
        self.blind_ns = 0;
        let enough = self.run.count(value < settings.leave, tick_ns);
        if enough && self.now_ns.saturating_sub(since_ns) >= settings.hold_ns {
            self.leave();
        }
    }

    fn wait_blind(&mut self, tick_ns: u64, settings: &ThresholdSettings) {
        self.blind_ns = self.blind_ns.saturating_add(tick_ns);
        if self.blind_ns >= settings.blind_ns {
            self.leave();
        }
    }

    fn enter(&mut self, settings: &ThresholdSettings) {
        self.active_since_ns = Some(self.now_ns);
        self.blind_ns = 0;
        self.run.enter(self.now_ns, &settings.healthy);
        self.budget.enter(self.now_ns);
    }

    fn leave(&mut self) {
        self.active_since_ns = None;
        self.over_ns = 0;
        self.run.leave(self.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    fn active_after(
        threshold: &mut Threshold,
        values: &[f64],
        settings: &ThresholdSettings,
    ) -> bool {
        for &value in values {
            threshold.step(Some(value), TICK_NS, settings);
        }
        threshold.is_active()
    }

    #[test]
    fn opens_at_exactly_the_fifth_healthy_sample() {
        let settings = ThresholdSettings::marks(0.85, 0.75);
        let mut threshold = Threshold::default();
        assert!(active_after(&mut threshold, &[0.9], &settings));
        assert!(active_after(&mut threshold, &[0.2; 4], &settings));
        assert!(!active_after(&mut threshold, &[0.2], &settings));
    }

    #[test]
    fn cpu_alone_acts_after_two_seconds_and_one_peak_never() {
        let settings = ThresholdSettings::cpu();
        let mut threshold = Threshold::default();
        assert!(!active_after(&mut threshold, &[1.0; 19], &settings));
        assert!(!active_after(&mut threshold, &[0.3], &settings));
        assert!(!active_after(&mut threshold, &[1.0; 19], &settings));
        assert!(active_after(&mut threshold, &[1.0], &settings));
    }

    #[test]
    fn an_hour_around_one_mark_changes_at_most_twice() {
        let settings = ThresholdSettings::marks(0.80, 0.75);
        for period in [1, 10, 600] {
            let mut threshold = Threshold::default();
            let mut changes = 0;
            for tick in 0..36_000 {
                let before = threshold.is_active();
                let value = if tick / period % 2 == 0 { 0.79 } else { 0.81 };
                changes += u32::from(threshold.step(Some(value), TICK_NS, &settings) != before);
            }
            assert!(changes <= 2, "{changes} changes with period {period}");
            assert!(active_after(&mut threshold, &[0.2; 4], &settings));
            assert!(!active_after(&mut threshold, &[0.2], &settings));
        }
    }

    #[test]
    fn what_is_not_measured_neither_enters_nor_heals_but_opens_in_the_end() {
        let settings = ThresholdSettings::marks(0.85, 0.75);
        let mut threshold = Threshold::default();
        for value in [None, Some(f64::NAN), Some(f64::INFINITY)] {
            assert!(!threshold.step(value, TICK_NS, &settings));
        }
        threshold.step(Some(0.9), TICK_NS, &settings);
        for _ in 0..49 {
            assert!(threshold.step(Some(f64::NAN), TICK_NS, &settings));
        }
        assert!(!threshold.step(None, TICK_NS, &settings));
    }

    #[test]
    fn the_budget_of_changes_bounds_a_swinging_signal() {
        let settings = ThresholdSettings::marks(0.85, 0.75);
        let mut threshold = Threshold::default();
        let mut changes = 0;
        for tick in 0..36_000 {
            let before = threshold.is_active();
            let value = if tick / 50 % 2 == 0 { 1.0 } else { 0.1 };
            changes += u32::from(threshold.step(Some(value), TICK_NS, &settings) != before);
        }
        assert_eq!(changes, settings.most_changes_per_hour);
        assert!(!threshold.is_active());
    }

    #[test]
    fn a_hold_keeps_it_active_however_healthy_the_samples_are() {
        let settings = ThresholdSettings {
            hold_ns: 1_000_000_000,
            ..ThresholdSettings::marks(0.85, 0.75)
        };
        let mut threshold = Threshold::default();
        assert!(active_after(&mut threshold, &[0.9], &settings));
        assert!(active_after(&mut threshold, &[0.1; 9], &settings));
        assert!(!active_after(&mut threshold, &[0.1], &settings));
    }
}
