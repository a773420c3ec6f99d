//! Sentinel's check in the place of the law: plain marks, on or off with each sample.
//!
//! ```text
//!               CPU > mark                          ┌────────┐
//!            ┌────────────────────────────────────► │ reject │ admits nothing
//!  ┌─────────┐                                      └────────┘
//!  │ healthy │
//!  └─────────┘                                      ┌──────────┐ admits while in flight is 1 or less, or no
//!            └────────────────────────────────────► │ overload │ more than best rate × least response time
//!               load > mark                         └──────────┘
//!
//!  back, or from one to the other, with the next sample that says otherwise
//! ```
//!
//! A sample is taken each second: the mean of the CPU share since the last one, and the load average.
//! There are no second marks, no healthy runs and no shaping; whoever wants these wants the law.
//! Best rate and least response time are those of the last two half seconds.
//!
//! For the host, decisions ask the same event by event: its marks are a system rule then
//! ([`crate::system`]), with the samples that are taken here, and what is said here of the host is for people: a
//! tick knows no more than the mean response time of a tick. A group has a CPU mark alone, which is on or off
//! for a whole sample, so that what is said here of a group is exact.

use tidegate_abi::board::ScopeWord;
use tidegate_abi::decision::{Cause, ScopeState};

use super::number::ceil_u32;
use super::sample::Sample;
use super::settings::{self, CpuUse};
use crate::second_mean::SecondMean;
use crate::statistics::{add_least, least_rt_ms, max_success_qps, place};
use crate::system::carried;
use crate::window::{BucketLength, Window};

const NS_PER_MS: u64 = 1_000_000;

/// What the check remembers of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sentinel {
    /// The CPU share since the last sample.
    second: SecondMean,
    /// The last sample.
    cpu: Option<f64>,
    load: Option<f64>,
    /// Load average for all CPUs.
    whole_load: Option<f64>,
    /// Successes of the last two half seconds, see [`Window`].
    successes: u64,
    /// Least response times, ms, see [`crate::statistics`].
    least: [u64; 2],
}

/// What the check says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Said {
    pub(super) state: ScopeState,
    pub(super) cause: Cause,
    /// Requests in flight below which one more is admitted.
    pub(super) limit: u32,
    /// Requests a second for callers without a permit.
    pub(super) allowed_qps: Option<f64>,
}

impl Sentinel {
    /// The last sample: load average, for all CPUs together, and CPU share.
    pub(super) fn samples(&self) -> (Option<f64>, Option<f64>) {
        (self.whole_load, self.cpu)
    }

    /// Takes a tick that ends at `now_ns`.
    pub(super) fn step(
        &mut self,
        tick: &Sample,
        now_ns: u64,
        marks: &settings::OperatorThresholds,
    ) -> Said {
        self.sample(tick, marks.cpu_use);
        let epoch = BucketLength::HALF_SECOND.epoch(now_ns);
        self.count(tick, epoch);
        let over = |value: Option<f64>, mark: Option<f64>| match (value, mark) {
            (Some(value), Some(mark)) => value > mark,
            _ => false,
        };
        let free = Said {
            state: ScopeState::Healthy,
            cause: Cause::None,
            limit: ScopeWord::LIMIT_MAX,
            allowed_qps: None,
        };
        if over(self.cpu, marks.cpu.map(|mark| mark.enter)) {
            return Said {
                state: ScopeState::Reject,
                cause: Cause::Cpu,
                limit: 0,
                ..free
            };
        }
        if !over(self.load, marks.load.map(|mark| mark.enter)) {
            return free;
        }
        let best_qps = max_success_qps(Window::at(self.successes, epoch));
        let carried = carried(best_qps, least_rt_ms(self.least, epoch));
        Said {
            state: ScopeState::Overload,
            cause: Cause::Load,
            // Refused are those that find more than this in flight, and more than one.
            limit: ceil_u32(libm::floor(carried.max(1.0)) + 1.0),
            allowed_qps: Some(best_qps),
        }
    }

    /// Takes the second's sample when it is due.
    fn sample(&mut self, tick: &Sample, by: CpuUse) {
        let used = tick.used(by);
        let Some(cpu) = self.second.step(used, tick.tick_ns) else {
            return;
        };
        self.cpu = cpu;
        self.load = tick.load_per_cpu;
        self.whole_load = tick
            .load_per_cpu
            .zip(tick.cpus)
            .map(|(load, cpus)| load * cpus);
    }

    fn count(&mut self, tick: &Sample, epoch: u16) {
        if tick.successes == 0 {
            return;
        }
        let successes = u32::try_from(tick.successes).unwrap_or(u32::MAX);
        let window = Window::at(self.successes, epoch);
        self.successes = window.add(successes).word();
        let mean_ms = tick.rt_ns.checked_div(tick.successes).unwrap_or(0) / NS_PER_MS;
        if let Some(word) = self.least.get_mut(place(epoch)) {
            *word = add_least(*word, epoch, mean_ms);
        }
    }
}
