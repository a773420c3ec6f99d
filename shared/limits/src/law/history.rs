//! The last ticks of a scope, and sums over them.

use super::number::{narrow, real, seconds};
use super::sample::Sample;
use super::tick_length::TickLength;

/// Whole ticks that are remembered.
pub const HISTORY_TICKS: usize = 100;

/// What is kept of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tick {
    length_s: f32,
    done: f32,
    offered: f32,
    cpu_s: f32,
    successes: f32,
    rt_s: f32,
    /// Whether its response times may become the base time.
    healthy: bool,
    /// Whether it is no tick of an incident.
    teaches: bool,
}

impl Tick {
    /// The tick of a sample on `cpus` effective CPUs.
    pub(super) fn of(sample: &Sample, cpus: f64, healthy: bool, teaches: bool) -> Self {
        Self {
            length_s: narrow(sample.length_s()),
            done: narrow(sample.done()),
            offered: narrow(sample.offered()),
            cpu_s: narrow(sample.cpu_s(cpus)),
            successes: narrow(real(sample.successes)),
            rt_s: narrow(seconds(sample.rt_ns)),
            healthy: healthy && teaches,
            teaches,
        }
    }

    /// Adds the next tick, which was no whole one.
    fn add(&mut self, next: &Self) {
        self.length_s += next.length_s;
        self.done += next.done;
        self.offered += next.offered;
        self.cpu_s += next.cpu_s;
        self.successes += next.successes;
        self.rt_s += next.rt_s;
        self.healthy &= next.healthy;
        self.teaches &= next.teaches;
    }

    /// Whether it may teach a capacity.
    pub(super) fn teaches(&self) -> bool {
        self.teaches
    }
}

/// Sums over some ticks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sums {
    pub length_s: f64,
    pub done: f64,
    pub offered: f64,
    pub cpu_s: f64,
}

impl Sums {
    /// `amount` in each second of these ticks; 0 where there are none.
    pub(super) fn per_second(&self, amount: f64) -> f64 {
        if self.length_s > 0.0 {
            amount / self.length_s
        } else {
            0.0
        }
    }
}

/// A ring of the last [`HISTORY_TICKS`] ticks.
#[derive(Debug, Clone)]
pub(super) struct History {
    ticks: [Tick; HISTORY_TICKS],
    next: usize,
    used: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            ticks: [Tick::default(); HISTORY_TICKS],
            next: 0,
            used: 0,
        }
    }
}

impl History {
    /// Remembers a tick and forgets the oldest one. Short ticks are put together to whole ones, so that so many ticks
    /// are so long a time.
    pub(super) fn push(&mut self, tick: Tick, length: TickLength) {
        let last = self
            .next
            .checked_sub(1)
            .unwrap_or(HISTORY_TICKS.saturating_sub(1));
        if self.used > 0
            && let Some(last) = self.ticks.get_mut(last)
            && f64::from(last.length_s) + 0.5 * f64::from(tick.length_s) < seconds(length.0)
        {
            last.add(&tick);
            return;
        }
        if let Some(slot) = self.ticks.get_mut(self.next) {
            *slot = tick;
        }
        self.next = self.next.saturating_add(1) % HISTORY_TICKS;
        self.used = self.used.saturating_add(1).min(HISTORY_TICKS);
    }

    /// The ticks, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Tick> {
        let (newer, older) = self.ticks.split_at_checked(self.next).unwrap_or_default();
        newer.iter().rev().chain(older.iter().rev()).take(self.used)
    }

    /// Sums over the newest `ticks` ticks.
    pub(super) fn sums(&self, ticks: usize) -> Sums {
        self.sums_where(ticks, |_tick| true)
    }

    /// Sums over those of the newest `ticks` ticks that `counts` takes.
    pub(super) fn sums_where(&self, ticks: usize, counts: impl Fn(&Tick) -> bool) -> Sums {
        self.newest_first()
            .take(ticks)
            .filter(|tick| counts(tick))
            .fold(Sums::default(), |sums, tick| Sums {
                length_s: sums.length_s + f64::from(tick.length_s),
                done: sums.done + f64::from(tick.done),
                offered: sums.offered + f64::from(tick.offered),
                cpu_s: sums.cpu_s + f64::from(tick.cpu_s),
            })
    }

    /// The least mean response time over runs of healthy ticks with `bucket` successes or more, seconds.
    pub(super) fn least_mean_rt_s(&self, bucket: f64) -> Option<f64> {
        let mut least: Option<f64> = None;
        let (mut successes, mut rt_s) = (0.0, 0.0);
        for tick in self.newest_first() {
            if !tick.healthy {
                (successes, rt_s) = (0.0, 0.0);
                continue;
            }
            successes += f64::from(tick.successes);
            rt_s += f64::from(tick.rt_s);
            if successes >= bucket.max(1.0) {
                let mean = rt_s / successes;
                least = Some(least.map_or(mean, |known| known.min(mean)));
                (successes, rt_s) = (0.0, 0.0);
            }
        }
        least
    }
}
