//! How long a tick was, against a whole one, and whether the next one should come sooner.
//!
//! A law that knows little yet, or has just seen a step, gains by short ticks: at ten times its capacity a scope without
//! history takes in a second's work in a tenth of it. So while a scope with traffic is cold, for ten seconds of it at
//! most, and for a second after a scope has gone into overload or a pressure trigger has fired, ticks are a quarter as
//! long. Whatever is counted by ticks is counted by whole ones.

use std::time::Duration;

use tidegate_limits::law::HISTORY_TICKS;

/// How long ticks stay short after a step, ns.
const HURRY_NS: u64 = 1_000_000_000;
/// How long a scope may be cold in short ticks, ns.
const COLD_NS: u64 = 10_000_000_000;
/// Short ticks in a whole one.
const PARTS: u32 = 4;
/// A short tick is this long at least: the kernel counts the CPU's time in steps of a few ms.
const LEAST: Duration = Duration::from_millis(10);

/// The time of a tick.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
pub(super) struct TickTime {
    /// Length of this tick, ns.
    pub length_ns: u64,
    /// Length of a whole tick, ns.
    whole_ns: u64,
    /// Since the last whole tick was over, ns.
    since_whole_ns: u64,
    /// Until when ticks are short, monotonic ns.
    hurry_until_ns: u64,
}

impl TickTime {
    /// A tick of this length begins, where a whole one is `whole_ns` long.
    pub(super) fn begin(&mut self, length_ns: u64, whole_ns: u64) {
        if self.is_whole() {
            self.since_whole_ns = 0;
        }
        (self.length_ns, self.whole_ns) = (length_ns, whole_ns.max(1));
        self.since_whole_ns = self.since_whole_ns.saturating_add(length_ns);
    }

    /// Whether a whole tick, or nearly so, is over with this one.
    pub(super) const fn is_whole(&self) -> bool {
        self.since_whole_ns >= self.whole_ns / 4 * 3
    }

    /// What of a whole tick this one is, up to 1.
    pub(super) fn part(&self) -> f64 {
        let number = tidegate_limits::number::double;
        if self.length_ns >= self.whole_ns {
            1.0
        } else {
            number(self.length_ns) / number(self.whole_ns)
        }
    }

    /// Length of a whole tick.
    pub(super) const fn whole(&self) -> Duration {
        Duration::from_nanos(self.whole_ns)
    }

    /// How long the law remembers, ns.
    pub(super) fn history_ns(&self) -> u64 {
        let ticks = u64::try_from(HISTORY_TICKS).unwrap_or(u64::MAX);
        ticks.saturating_mul(self.whole_ns)
    }

    /// Something has just begun at `now_ns`: ticks are short for a while.
    pub(super) fn hurry(&mut self, now_ns: u64) {
        self.hurry_until_ns = now_ns.saturating_add(HURRY_NS);
    }

    /// Whether ticks are short at `now_ns`.
    pub(super) const fn hurries(&self, now_ns: u64) -> bool {
        now_ns < self.hurry_until_ns
    }
}

/// The short tick beside one of this length; `None` where it would be too short.
pub(super) fn short(tick: Duration) -> Option<Duration> {
    let short = tick / PARTS;
    (short >= LEAST).then_some(short)
}

/// How long a scope has been cold with traffic, ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColdTime(u64);

impl ColdTime {
    /// Takes a tick of a scope into account; whether it is one for short ticks.
    pub(super) fn step(&mut self, is_cold: bool, has_traffic: bool, length_ns: u64) -> bool {
        if !is_cold || !has_traffic || self.0 >= COLD_NS {
            return false;
        }
        self.0 = self.0.saturating_add(length_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE_NS: u64 = 100_000_000;

    #[test]
    fn field_l14_four_short_ticks_are_a_whole_one() {
        let mut time = TickTime::default();
        let mut whole = |length_ns| {
            time.begin(length_ns, WHOLE_NS);
            (time.is_whole(), time.part())
        };
        assert_eq!(whole(WHOLE_NS), (true, 1.0));
        assert_eq!(whole(WHOLE_NS + 5), (true, 1.0));
        assert_eq!(
            [WHOLE_NS / 4; 4].map(&mut whole),
            [(false, 0.25), (false, 0.25), (true, 0.25), (false, 0.25)]
        );
        assert_eq!(whole(WHOLE_NS), (true, 1.0));
    }

    #[test]
    fn field_l14_ticks_are_short_for_a_second_and_a_cold_scope_has_ten() {
        let mut time = TickTime::default();
        assert!(!time.hurries(5));
        time.hurry(5);
        assert!(time.hurries(HURRY_NS) && !time.hurries(HURRY_NS + 5));
        let mut cold = ColdTime::default();
        let short = (0..1000).filter(|_tick| cold.step(true, true, WHOLE_NS / 4));
        assert_eq!(short.count(), 400);
        let mut idle = ColdTime::default();
        assert!(!idle.step(true, false, 1) && !idle.step(false, true, 1));
        assert_eq!(short_ms(100), Some(25));
        assert_eq!(short_ms(20), None);
    }

    fn short_ms(tick_ms: u64) -> Option<u128> {
        let short = short(Duration::from_millis(tick_ms));
        short.map(|short| short.as_millis())
    }
}
