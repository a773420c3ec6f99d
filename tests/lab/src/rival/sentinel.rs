//! Sentinel's system rule on the CPU: a sample each second; over the mark every request is refused.

use super::{Measured, Rival};

/// The mark, as share of the CPU.
const MARK: f64 = 0.85;
/// Ticks in a sample.
const TICKS: u32 = 10;

/// The rule.
#[derive(Debug, Default)]
pub(crate) struct CpuRule {
    sum: f64,
    ticks: u32,
    sample: f64,
}

impl Rival for CpuRule {
    fn admits(&mut self, _now_s: f64, _inflight: u32) -> bool {
        self.sample <= MARK
    }

    fn ended(&mut self, _now_s: f64, _rt_s: f64, _inflight: u32) {}

    fn tick(&mut self, measured: Measured) {
        self.sum += measured.busy;
        self.ticks += 1;
        if self.ticks == TICKS {
            self.sample = self.sum / f64::from(TICKS);
            (self.sum, self.ticks) = (0.0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_over_the_mark_refuses_all_and_a_second_under_it_nobody() {
        let mut rule = CpuRule::default();
        let second = |rule: &mut CpuRule, busy| {
            (0..TICKS).for_each(|_| rule.tick(Measured { busy }));
            rule.admits(0.0, 0)
        };
        assert!(second(&mut rule, 0.8));
        assert!(!second(&mut rule, 0.9));
        assert!(second(&mut rule, 0.1));
    }
}
