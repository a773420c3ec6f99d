//! Where the cut-off of a scope stands.
//!
//! In overload a tick says how many requests of each class were offered and how many were admitted.
//! The cut-off is the level up to which the most important of the offered are `admitted × margin`,
//! with the requests of a class spread evenly over its sub-levels. The margin is feedback: where
//! requests under the cut-off are refused it shrinks, where they are not it grows, so that places
//! are neither left empty nor fought for.

use super::{LEVELS, SUBLEVELS};

/// Classes that have levels.
pub const CLASSES: usize = 3;

/// Weight of the newest tick in the mean counts.
const WEIGHT: f64 = 0.3;
/// Share of the requests under the cut-off that may be refused before the margin shrinks.
const MUCH: f64 = 0.15;
/// Share under which it grows.
const LITTLE: f64 = 0.03;
/// What a tick does to the margin.
const STEP: f64 = 1.05;
const MARGINS: core::ops::RangeInclusive<f64> = 0.8..=2.0;

/// What came to the gate in a tick of overload, by class, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassArrivals {
    /// Requests that were offered.
    pub offered: [u64; CLASSES],
    /// Those of them with a key.
    pub keyed: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those of them that were under the cut-off.
    pub refused_under: u64,
}

impl ClassArrivals {
    fn total(&self) -> f64 {
        self.offered.iter().map(|count| real(*count)).sum()
    }
}

impl ClassArrivals {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, amount: u64| *sum = sum.saturating_add(amount);
        for (sum, amount) in self.offered.iter_mut().zip(other.offered) {
            add(sum, amount);
        }
        add(&mut self.keyed, other.keyed);
        add(&mut self.refused, other.refused);
        add(&mut self.refused_under, other.refused_under);
    }
}

/// The cut-off of one scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutoff {
    /// Mean offered requests of each class.
    offered: [f64; CLASSES],
    /// Mean admitted requests.
    admitted: f64,
    margin: f64,
    keyed: bool,
    level: u32,
}

impl Default for Cutoff {
    fn default() -> Self {
        Self {
            offered: [0.0; CLASSES],
            admitted: 0.0,
            margin: 1.0,
            keyed: false,
            level: LEVELS,
        }
    }
}

impl Cutoff {
    /// The level that is in force: requests at or over it are cut.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Takes a tick in overload into account. While what piled up before goes away next to nothing is
    /// admitted, which tells nothing: then `draining` is the number of requests that the scope can do
    /// in a tick, and stands for the admitted.
    pub fn step(&mut self, tick: &ClassArrivals, draining: Option<f64>) -> u32 {
        let total = tick.total();
        if total <= 0.0 {
            return self.level;
        }
        let first = self.offered.iter().sum::<f64>() <= 0.0;
        let weight = if first { 1.0 } else { WEIGHT };
        for (mean, count) in self.offered.iter_mut().zip(tick.offered) {
            *mean += weight * (real(count) - *mean);
        }
        let admitted = draining.unwrap_or(total - real(tick.refused).min(total));
        self.admitted += weight * (admitted - self.admitted);
        self.keyed |= tick.keyed > 0;
        if draining.is_none() {
            self.feed_back(tick, total);
        }
        self.level = if self.tells_nobody_apart() {
            LEVELS
        } else {
            self.place(self.admitted * self.margin)
        };
        self.level
    }

    /// The scope is no longer in overload.
    pub fn release(&mut self) {
        *self = Self::default();
    }

    /// Requests of one class without keys are all the same: a cut-off would only roll dice. Where all
    /// are critical it is needed, for it ends what they may have beyond the limit.
    fn tells_nobody_apart(&self) -> bool {
        let total: f64 = self.offered.iter().sum();
        let mut less_important = self.offered.iter().skip(1);
        !self.keyed && less_important.any(|count| *count >= total * 0.999)
    }

    fn feed_back(&mut self, tick: &ClassArrivals, total: f64) {
        if self.level >= LEVELS {
            return;
        }
        let under = self.under(self.level) * total;
        let share = real(tick.refused_under) / under.max(1.0);
        if share > MUCH {
            self.margin /= STEP;
        } else if share < LITTLE && tick.refused > 0 {
            self.margin *= STEP;
        }
        self.margin = self.margin.clamp(*MARGINS.start(), *MARGINS.end());
    }

    /// Share of the offered requests that is under a level.
    fn under(&self, level: u32) -> f64 {
        let total: f64 = self.offered.iter().sum();
        let mut under = 0.0;
        let mut first = 0_u32;
        for count in self.offered {
            let of_class = level.saturating_sub(first).min(SUBLEVELS);
            under += count * f64::from(of_class) / f64::from(SUBLEVELS);
            first = first.saturating_add(SUBLEVELS);
        }
        under / total.max(1.0)
    }

    /// The level under which there are so many requests of a tick.
    fn place(&self, wanted: f64) -> u32 {
        let mut left = wanted;
        let mut level = 0_u32;
        for count in self.offered {
            if count > left {
                let part = left.max(0.0) / count * f64::from(SUBLEVELS);
                return level.saturating_add(crate::number::whole_u32(part));
            }
            left -= count;
            level = level.saturating_add(SUBLEVELS);
        }
        LEVELS
    }
}

fn real(count: u64) -> f64 {
    crate::number::double(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(offered: [u64; 3], refused: u64, refused_under: u64) -> ClassArrivals {
        ClassArrivals {
            offered,
            keyed: 0,
            refused,
            refused_under,
        }
    }

    #[test]
    fn the_first_tick_places_it_where_as_many_fit_as_were_admitted() {
        let mut cutoff = Cutoff::default();
        // 100 offered, 50 admitted: all 10 critical, 40 of the 60 normal.
        assert_eq!(cutoff.step(&tick([10, 60, 30], 50, 50), None), 128 + 85);
        cutoff.release();
        assert_eq!(cutoff.level(), LEVELS);
    }

    #[test]
    fn requests_that_nobody_can_tell_apart_are_not_cut() {
        let mut cutoff = Cutoff::default();
        assert_eq!(cutoff.step(&tick([0, 100, 0], 80, 80), None), LEVELS);
        let critical = Cutoff::default().step(&tick([100, 0, 0], 80, 80), None);
        assert!(critical < SUBLEVELS);
        let keyed = ClassArrivals {
            keyed: 100,
            ..tick([0, 100, 0], 80, 0)
        };
        assert!((128..256).contains(&cutoff.step(&keyed, None)));
    }

    #[test]
    fn refusals_under_it_lower_it_and_none_raise_it() {
        let mut cutoff = Cutoff::default();
        let first = cutoff.step(&tick([10, 60, 30], 50, 50), None);
        let lower = cutoff.step(&tick([10, 60, 30], 50, 20), None);
        assert!(lower < first);
        let higher = cutoff.step(&tick([10, 60, 30], 50, 0), None);
        assert!(higher > lower);
    }

    #[test]
    fn in_a_tick_that_drains_the_capacity_stands_for_the_admitted() {
        let mut cutoff = Cutoff::default();
        let placed = cutoff.step(&tick([10, 60, 30], 50, 50), None);
        assert_eq!(cutoff.step(&tick([10, 60, 30], 90, 40), Some(50.0)), placed);
    }

    #[test]
    fn an_idle_tick_and_odd_counts_keep_it_within_the_levels() {
        let mut cutoff = Cutoff::default();
        let placed = cutoff.step(&tick([10, 60, 30], 50, 50), None);
        assert_eq!(cutoff.step(&ClassArrivals::default(), None), placed);
        for _tick in 0..100 {
            let level = cutoff.step(&tick([u64::MAX; 3], u64::MAX, u64::MAX), None);
            assert!(level <= LEVELS);
        }
    }
}
