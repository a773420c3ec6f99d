//! What the programs cost, and whether that is too much. Pure: counters and time go in.

use super::view::Counters;

/// What the kernel spends around a program before and after the time that the program takes of itself. The kernel's
/// own account, which `tidegate bench --ebpf` shows beside it, has besides what that account takes.
const AROUND_NS: f64 = 30.0;

/// Looks over which the cost is averaged. One look is a second: a burst shorter than five is no reason.
const LOOKS: usize = 5;

/// What happened since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cost {
    /// Runs of the programs a second.
    pub(super) runs_per_s: f64,
    /// Time that one run takes, ns.
    pub(super) run_ns: f64,
    /// Share of one CPU that the programs take.
    pub(super) ratio: f64,
}

/// Watches the cost.
#[derive(Debug)]
pub(super) struct Budget {
    allowed: f64,
    last: Option<(u64, Counters)>,
    /// Of the last looks, as shares of one CPU.
    ratios: [f64; LOOKS],
    looks: usize,
    run_ns: f64,
}

impl Budget {
    /// A budget of this share of one CPU.
    pub(super) const fn new(allowed: f64) -> Self {
        Self {
            allowed,
            last: None,
            ratios: [0.0; LOOKS],
            looks: 0,
            run_ns: 0.0,
        }
    }

    /// Takes the counters at `now_ns`; `None` at the first look.
    pub(super) fn take(&mut self, now_ns: u64, counters: Counters) -> Option<Cost> {
        let (last_ns, last) = self.last.replace((now_ns, counters))?;
        let elapsed_ns = now_ns.checked_sub(last_ns).filter(|elapsed| *elapsed > 0)?;
        let grown = |now: u64, before: u64| to_f64(now.saturating_sub(before));
        let timed = grown(counters.timed, last.timed);
        if timed > 0.0 {
            self.run_ns = grown(counters.timed_ns, last.timed_ns) / timed + AROUND_NS;
        }
        let runs = grown(counters.runs, last.runs);
        let cost = Cost {
            runs_per_s: runs * 1e9 / to_f64(elapsed_ns),
            run_ns: self.run_ns,
            ratio: runs * self.run_ns / to_f64(elapsed_ns),
        };
        if let Some(place) = self.looks.checked_rem(LOOKS)
            && let Some(ratio) = self.ratios.get_mut(place)
        {
            *ratio = cost.ratio;
        }
        self.looks = self.looks.saturating_add(1);
        Some(cost)
    }

    /// The average share of one CPU, if it is more than is allowed.
    pub(super) fn exceeded(&self) -> Option<f64> {
        let mean = self.ratios.iter().sum::<f64>() / 5.0;
        (self.looks >= LOOKS && mean > self.allowed).then_some(mean)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn counters(runs: u64, run_ns: u64) -> Counters {
        Counters {
            runs,
            timed: runs / 256,
            timed_ns: runs / 256 * run_ns,
            ..Counters::default()
        }
    }

    /// The share after each second with so many runs.
    fn after(budget: &mut Budget, seconds: &[u64]) -> Option<f64> {
        let mut runs = 0;
        budget.take(0, counters(0, 70));
        for (second, more) in (1..).zip(seconds) {
            runs += more;
            budget.take(second * SECOND_NS, counters(runs, 70));
        }
        budget.exceeded()
    }

    #[test]
    fn the_cost_is_runs_times_what_a_timed_run_takes() {
        let mut budget = Budget::new(0.02);
        assert_eq!(budget.take(0, counters(0, 0)), None);
        let cost = budget.take(SECOND_NS, counters(256_000, 70)).unwrap();
        assert!((cost.run_ns - 100.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.ratio - 0.0256).abs() < 1e-9, "{cost:?}");
    }

    #[test]
    fn a_burst_is_no_reason_and_five_seconds_are() {
        assert_eq!(after(&mut Budget::new(0.02), &[512_000, 0, 0, 0, 0]), None);
        assert_eq!(after(&mut Budget::new(0.02), &[256_000; 4]), None);
        let over = after(&mut Budget::new(0.02), &[256_000; 5]).unwrap();
        assert!((over - 0.0256).abs() < 1e-6, "{over}");
    }

    #[test]
    fn counters_that_go_back_or_time_that_stands_are_no_cost() {
        let mut budget = Budget::new(0.0);
        budget.take(5, counters(u64::MAX, 70));
        assert_eq!(budget.take(5, counters(0, 0)), None);
        let cost = budget.take(6, counters(0, 0)).unwrap();
        assert!(cost.ratio.abs() < f64::EPSILON, "{cost:?}");
    }
}
