//! How late the ticks of the last minute were.

use std::time::Duration;

/// Lateness of the last ticks, exact to 1 µs.
#[derive(Debug)]
pub(super) struct Lateness {
    late_us: Vec<u32>,
    next: usize,
    used: usize,
    /// Room to sort in, so that a tick allocates nothing.
    sorted: Vec<u32>,
}

impl Lateness {
    /// Room for a minute of ticks of this length.
    pub(super) fn of_a_minute(tick: Duration) -> Self {
        let ticks = Duration::from_mins(1).as_micros() / tick.as_micros().max(1);
        let ticks = usize::try_from(ticks)
            .unwrap_or(usize::MAX)
            .clamp(1, 60_000);
        Self {
            late_us: vec![0; ticks],
            next: 0,
            used: 0,
            sorted: vec![0; ticks],
        }
    }

    /// Takes down how late a tick was.
    pub(super) fn push(&mut self, late: Duration) {
        if let Some(slot) = self.late_us.get_mut(self.next) {
            *slot = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
        }
        self.next = (self.next + 1) % self.late_us.len();
        self.used = (self.used + 1).min(self.late_us.len());
    }

    /// What 99 of 100 ticks were not later than.
    pub(super) fn p99(&mut self) -> Duration {
        let (Some(known), Some(sorted)) = (
            self.late_us.get(..self.used),
            self.sorted.get_mut(..self.used),
        ) else {
            return Duration::ZERO;
        };
        sorted.copy_from_slice(known);
        let rank = (self.used * 99).div_ceil(100).saturating_sub(1);
        if sorted.is_empty() {
            return Duration::ZERO;
        }
        let (_, late_us, _) = sorted.select_nth_unstable(rank);
        Duration::from_micros(u64::from(*late_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_is_the_99th_of_100() {
        let mut lateness = Lateness::of_a_minute(Duration::from_millis(600));
        assert_eq!(lateness.p99(), Duration::ZERO);
        for late_us in (1..=100).rev() {
            lateness.push(Duration::from_micros(late_us));
        }
        assert_eq!(lateness.p99(), Duration::from_micros(99));
    }

    #[test]
    fn after_a_minute_an_old_tick_is_forgotten() {
        let mut lateness = Lateness::of_a_minute(Duration::from_secs(6));
        lateness.push(Duration::from_secs(9));
        assert_eq!(lateness.p99(), Duration::from_secs(9));
        for _ in 0..10 {
            lateness.push(Duration::from_micros(5));
        }
        assert_eq!(lateness.p99(), Duration::from_micros(5));
    }
}
