//! The use of a group over the last quota periods.
//!
//! A group that is held by its quota uses all of a period's run time at once. A tick that is as long as a period meets
//! the end of one and the beginning of the next as chance has it, and reads 60 and 140 % in turn.

use super::super::meter::to_f64;
use super::usage::Usage;
use crate::procfs::Missing;

/// Quota periods that a share spans at least.
const PERIODS: u64 = 3;
/// Samples that are kept. Ticks are at least 10 ms, quota periods mostly 100 ms.
const SAMPLES: usize = 32;

/// The last samples of one quantity, each with the time that it stands for.
#[derive(Debug, Clone, Copy)]
struct Recent {
    samples: [(u64, f64); SAMPLES],
    next: usize,
}

impl Recent {
    const NEW: Self = Self {
        samples: [(0, 0.0); SAMPLES],
        next: 0,
    };

    /// Takes a sample and tells the mean over so much time, or over what there is.
    fn take(
        &mut self,
        elapsed_ns: u64,
        now: Result<f64, Missing>,
        span_ns: u64,
    ) -> Result<f64, Missing> {
        let now = now.inspect_err(|_missing| *self = Self::NEW)?;
        if let Some(slot) = self.samples.get_mut(self.next) {
            *slot = (elapsed_ns, now);
        }
        let (older, newer) = self
            .samples
            .split_at_checked(self.next.saturating_add(1))
            .unwrap_or_default();
        let newest_first = older.iter().rev().chain(newer.iter().rev());
        self.next = self.next.saturating_add(1) % SAMPLES;
        let (mut time_ns, mut used) = (0_u64, 0.0);
        for (elapsed_ns, sample) in newest_first.filter(|(elapsed_ns, _)| *elapsed_ns > 0) {
            time_ns = time_ns.saturating_add(*elapsed_ns);
            used += sample * to_f64(*elapsed_ns);
            if time_ns >= span_ns {
                break;
            }
        }
        Ok(if time_ns > 0 {
            used / to_f64(time_ns)
        } else {
            now
        })
    }
}

/// Use of the last periods.
#[derive(Debug)]
pub(super) struct RecentUse {
    last_ns: Option<u64>,
    each: [Recent; 3],
}

impl RecentUse {
    pub(super) const NEW: Self = Self {
        last_ns: None,
        each: [Recent::NEW; 3],
    };

    /// Takes a sample; `period_us` is that of the quota in force, if there is one.
    pub(super) fn take(&mut self, now_ns: u64, usage: Usage, period_us: Option<u64>) -> Usage {
        let last_ns = self.last_ns.replace(now_ns);
        let elapsed_ns = last_ns.map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        let span_ns = period_us
            .unwrap_or(0)
            .saturating_mul(1000)
            .saturating_mul(PERIODS);
        let [total, user, system] = &mut self.each;
        Usage {
            total: total.take(elapsed_ns, usage.total, span_ns),
            user: user.take(elapsed_ns, usage.user, span_ns),
            system: system.take(elapsed_ns, usage.system, span_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 100_000_000;

    fn usage(cpus: f64) -> Usage {
        Usage {
            total: Ok(cpus),
            user: Ok(cpus),
            system: Ok(0.0),
        }
    }

    #[test]
    fn field_s16_a_quota_that_is_always_used_reads_as_full_in_every_tick() {
        let mut recent = RecentUse::NEW;
        for tick in 1..40_u64 {
            // Of a quota of 0.05 CPUs.
            let now = if tick % 2 == 0 { 0.03 } else { 0.07 };
            let told = recent.take(tick * TICK_NS, usage(now), Some(100_000));
            if tick > 3 {
                let share = told.total.unwrap() / 0.05;
                assert!((0.85..=1.15).contains(&share), "tick {tick}: {share}");
            }
        }
    }

    #[test]
    fn without_a_quota_each_tick_is_told_as_it_is() {
        let mut recent = RecentUse::NEW;
        for (tick, now) in (1..).zip([0.1, 0.9, 0.2]) {
            let told = recent.take(tick * TICK_NS, usage(now), None);
            assert_eq!(told.total, Ok(now));
        }
    }
}
