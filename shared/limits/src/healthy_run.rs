//! How long a value must be healthy without a break to leave a protected state.
//!
//! The time starts at [`HealthyRunSettings::samples`] ticks, or at [`HealthyRunSettings::for_ns`] where that is set, and doubles, up to
//! [`HealthyRunSettings::most_samples`] or [`HealthyRunSettings::most_ns`], each time the state is entered again within
//! [`HealthyRunSettings::reentry_ns`] of leaving it. So a first recovery is quick, and a load that sits on the mark cannot make
//! the state flap.
//!
//! A tick counts with its length, and one that came late for one: nothing was seen of the time between.

/// Settings of a healthy run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthyRunSettings {
    /// Length of a tick that is neither early nor late, ns.
    pub tick_ns: u64,
    /// Healthy ticks in a row that are enough the first time; 0 reads as 1.
    pub samples: u32,
    /// The most that repeated entries can raise the number to.
    pub most_samples: u32,
    /// A time in the place of `samples`, ns; 0 = none.
    pub for_ns: u64,
    /// A time in the place of `most_samples`, ns; counts with `for_ns`.
    pub most_ns: u64,
    /// An entry sooner than this after leaving doubles the time, ns.
    pub reentry_ns: u64,
}

impl Default for HealthyRunSettings {
    fn default() -> Self {
        Self {
            tick_ns: TICK_NS,
            samples: 5,
            most_samples: 20,
            for_ns: 0,
            most_ns: 0,
            reentry_ns: 30_000_000_000,
        }
    }
}

/// The usual tick, ns.
pub const TICK_NS: u64 = 100_000_000;

impl HealthyRunSettings {
    /// The least and the most that leaving takes, ns.
    fn bounds(&self) -> (u64, u64) {
        let ticks = |samples: u32| u64::from(samples.max(1)).saturating_mul(self.tick_ns);
        let (least, most) = if self.for_ns > 0 {
            (self.for_ns, self.most_ns)
        } else {
            (ticks(self.samples), ticks(self.most_samples))
        };
        (least, most.max(least))
    }
}

/// A run of healthy ticks, counted while the state is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
pub struct HealthyRun {
    seen_ns: u64,
    needed_ns: u64,
    tick_ns: u64,
    left_ns: Option<u64>,
}

impl HealthyRun {
    /// The state is entered at `now_ns`: decides how long leaving will take.
    pub fn enter(&mut self, now_ns: u64, settings: &HealthyRunSettings) {
        let again = self
            .left_ns
            .is_some_and(|left| now_ns.saturating_sub(left) < settings.reentry_ns);
        let (least, most) = settings.bounds();
        self.needed_ns = if again {
            self.needed_ns.saturating_mul(2).clamp(least, most)
        } else {
            least
        };
        self.tick_ns = settings.tick_ns.max(1);
        self.seen_ns = 0;
    }

    /// Counts a tick of this length; true when the run is long enough to leave, to the nearest tick.
    pub fn count(&mut self, healthy: bool, tick_ns: u64) -> bool {
        self.seen_ns = if healthy {
            self.seen_ns.saturating_add(tick_ns.min(self.tick_ns))
        } else {
            0
        };
        healthy && self.seen_ns.saturating_add(self.tick_ns / 2) >= self.needed_ns
    }

    /// The state is left at `now_ns`.
    pub fn leave(&mut self, now_ns: u64) {
        self.left_ns = Some(now_ns);
        self.seen_ns = 0;
    }

    /// Healthy ticks in a row that leaving takes this time.
    pub fn needed(&self) -> u32 {
        self.ticks(self.needed_ns)
    }

    /// Healthy ticks seen in a row.
    pub fn seen(&self) -> u32 {
        self.ticks(self.seen_ns)
    }

    /// A time in ticks, to the nearest.
    fn ticks(&self, time_ns: u64) -> u32 {
        let half = self.tick_ns / 2;
        let ticks = time_ns.saturating_add(half).checked_div(self.tick_ns);
        u32::try_from(ticks.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy(run: &mut HealthyRun, ticks: u32) -> bool {
        (0..ticks).any(|_| run.count(true, TICK_NS))
    }

    #[test]
    fn quick_reentries_double_up_to_the_most_and_a_late_one_starts_over() {
        let settings = HealthyRunSettings::default();
        let mut run = HealthyRun::default();
        let mut needed = [0; 4];
        for slot in &mut needed {
            run.enter(0, &settings);
            *slot = run.needed();
            run.leave(0);
        }
        assert_eq!(needed, [5, 10, 20, 20]);
        run.enter(settings.reentry_ns, &settings);
        assert_eq!(run.needed(), 5);
    }

    #[test]
    fn an_unhealthy_sample_starts_the_run_again() {
        let mut run = HealthyRun::default();
        run.enter(0, &HealthyRunSettings::default());
        assert!(!healthy(&mut run, 4));
        assert!(!run.count(false, TICK_NS));
        assert!(!healthy(&mut run, 4));
        assert!(run.count(true, TICK_NS));
    }

    #[test]
    fn field_l8_five_healthy_seconds_are_five_seconds_at_any_tick() {
        for tick_ns in [10_000_000, TICK_NS, 1_000_000_000] {
            let settings = HealthyRunSettings {
                tick_ns,
                for_ns: 5_000_000_000,
                most_ns: 20_000_000_000,
                ..HealthyRunSettings::default()
            };
            let mut run = HealthyRun::default();
            for seconds in [5, 10, 20, 20] {
                run.enter(0, &settings);
                let ticks = (1..10_000).find(|_tick| run.count(true, tick_ns));
                let took_ns = ticks.expect("it ends") * tick_ns;
                assert_eq!(took_ns, seconds * 1_000_000_000, "at {tick_ns}");
                run.leave(0);
            }
        }
    }

    #[test]
    fn field_l14_short_ticks_count_with_their_length_and_a_late_one_for_one() {
        let mut run = HealthyRun::default();
        run.enter(0, &HealthyRunSettings::default());
        assert!(!(0..17).any(|_| run.count(true, TICK_NS / 4)));
        assert!(run.count(true, TICK_NS / 4), "to the nearest tick");
        run.enter(0, &HealthyRunSettings::default());
        assert!(!(0..4).any(|_| run.count(true, 10 * TICK_NS)));
        assert!(run.count(true, 10 * TICK_NS));
    }

    #[test]
    fn ticks_that_are_a_little_off_count_as_ticks() {
        for off_ns in (0..10_000_000).step_by(100_000) {
            let mut run = HealthyRun::default();
            run.enter(0, &HealthyRunSettings::default());
            for tick in 1..=5 {
                let jitter = if tick % 2 == 0 { off_ns } else { 0 };
                assert_eq!(run.count(true, TICK_NS - jitter), tick == 5);
            }
        }
    }
}
