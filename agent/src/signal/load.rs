//! A load average that stands still while the machine does not, as some containers show it.

use super::meter::to_f64;

/// Samples without a change before a load average is doubted.
const SAMPLES_MIN: u64 = 60;
/// The kernel brings load averages up to date every 5 s; without that much time nothing can move.
const REFRESH_NS: u64 = 5_000_000_000;
/// How far the tasks must be from the average for it to be due to move. A machine that is idle, or
/// steadily busy, has an average that rightly stands still.
const DISTANCE_MIN: f64 = 0.5;

/// Remembers how long the averages have been the same to the digit, and what the tasks did then.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadWatch {
    minutes: [f64; 3],
    since_ns: u64,
    samples: u64,
    fewest: u64,
    most: u64,
    sum: u64,
}

impl LoadWatch {
    /// Takes a sample of the averages and of the tasks that run or are blocked, the reader included;
    /// tells whether the averages are frozen.
    pub(crate) fn is_frozen(&mut self, now_ns: u64, minutes: [f64; 3], tasks: u64) -> bool {
        let is_same = self
            .minutes
            .iter()
            .zip(minutes)
            .all(|(old, new)| old.total_cmp(&new).is_eq());
        if self.samples == 0 || !is_same {
            let (fewest, most) = (tasks, tasks);
            *self = Self {
                minutes,
                since_ns: now_ns,
                samples: 1,
                fewest,
                most,
                sum: tasks,
            };
            return false;
        }
        self.samples = self.samples.saturating_add(1);
        self.fewest = self.fewest.min(tasks);
        self.most = self.most.max(tasks);
        self.sum = self.sum.saturating_add(tasks);
        self.samples >= SAMPLES_MIN
            && now_ns.saturating_sub(self.since_ns) > REFRESH_NS
            && self.fewest != self.most
            && self.distance() >= DISTANCE_MIN
    }

    /// From the mean number of tasks, less the reader, to the one-minute average.
    fn distance(&self) -> f64 {
        let [load1, ..] = self.minutes;
        (to_f64(self.sum) / to_f64(self.samples) - 1.0 - load1).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    /// The first tick at which a standing average is called frozen.
    fn first_frozen(load1: f64, tasks: impl Fn(u64) -> u64) -> Option<u64> {
        let mut watch = LoadWatch::default();
        (1..=200).find(|tick| watch.is_frozen(tick * TICK_NS, [load1, 0.3, 0.1], tasks(*tick)))
    }

    #[test]
    fn a_standing_average_over_changing_tasks_is_frozen() {
        assert_eq!(first_frozen(0.72, |tick| 1 + tick % 5), Some(60));
    }

    #[test]
    fn an_idle_and_a_steadily_busy_machine_are_not_frozen() {
        assert_eq!(first_frozen(0.0, |tick| 1 + tick % 10 / 9), None);
        assert_eq!(first_frozen(2.0, |tick| 3 + tick % 10 / 9), None);
        assert_eq!(first_frozen(0.72, |_tick| 5), None);
    }

    #[test]
    fn an_average_that_moves_is_believed_again() {
        let mut watch = LoadWatch::default();
        let mut frozen = false;
        for tick in 1..=60 {
            frozen = watch.is_frozen(tick * TICK_NS, [0.5; 3], 1 + tick % 7);
        }
        assert!(frozen);
        assert!(!watch.is_frozen(61 * TICK_NS, [0.51; 3], 3));
    }
}
