//! How many healthy samples in a row it takes to leave a protected state.
//!
//! The number starts at [`Settings::samples`] and doubles, up to [`Settings::most_samples`], each
//! time the state is entered again within [`Settings::reentry_ns`] of leaving it. So a first
//! recovery is quick, and a load that sits on the mark cannot make the state flap.

/// Settings of a run of healthy samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Healthy samples in a row that are enough the first time; 0 reads as 1.
    pub samples: u32,
    /// The most that repeated entries can raise the number to.
    pub most_samples: u32,
    /// An entry sooner than this after leaving doubles the number, ns.
    pub reentry_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            samples: 5,
            most_samples: 20,
            reentry_ns: 30_000_000_000,
        }
    }
}

/// A run of healthy samples, counted while the state is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealthyRun {
    seen: u32,
    needed: u32,
    left_ns: Option<u64>,
}

impl HealthyRun {
    /// The state is entered at `now_ns`: decides how many samples leaving will take.
    pub fn enter(&mut self, now_ns: u64, settings: &Settings) {
        let again = self
            .left_ns
            .is_some_and(|left| now_ns.saturating_sub(left) < settings.reentry_ns);
        let least = settings.samples.max(1);
        self.needed = if again {
            self.needed
                .saturating_mul(2)
                .clamp(least, settings.most_samples.max(least))
        } else {
            least
        };
        self.seen = 0;
    }

    /// Counts one sample; true when the run is long enough to leave.
    pub fn count(&mut self, healthy: bool) -> bool {
        self.seen = if healthy {
            self.seen.saturating_add(1)
        } else {
            0
        };
        self.seen >= self.needed.max(1)
    }

    /// The state is left at `now_ns`.
    pub fn leave(&mut self, now_ns: u64) {
        self.left_ns = Some(now_ns);
        self.seen = 0;
    }

    /// Healthy samples in a row that leaving takes this time.
    pub fn needed(&self) -> u32 {
        self.needed
    }

    /// Healthy samples seen in a row.
    pub fn seen(&self) -> u32 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_reentries_double_up_to_the_most_and_a_late_one_starts_over() {
        let settings = Settings::default();
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
        run.enter(0, &Settings::default());
        assert!(!(0..4).any(|_| run.count(true)));
        assert!(!run.count(false));
        assert!(!(0..4).any(|_| run.count(true)));
        assert!(run.count(true));
    }
}
