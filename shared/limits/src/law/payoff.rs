//! Whether more in flight gets more done, in an overload while the CPU is idle.
//!
//! A service that waits for others does more the more it holds; a pool whose workers all wait does not, and whoever is
//! let in only queues. So the limit grows by a trial: what is done in a second, a larger limit, the time of a few
//! requests, what is done in a second then. What does not bring half as much as it grew is taken back, and what
//! does makes the next trial larger.

use super::number::seconds;
use super::step::Step;

/// How long is measured before and after a trial, ns.
const MEASURE_NS: u64 = 1_000_000_000;
/// Least and most time that a larger limit is given to show, ns. In between it is twice the mean response time.
const SETTLE_NS: [u64; 2] = [500_000_000, 20_000_000_000];
/// Growth of the limit in a trial, a share of it: at first, and at most.
const GROWTH: [f64; 2] = [0.25, 1.0];
/// Share of the growth that must come back as work.
const PAYS: f64 = 0.5;

/// Where a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Phase {
    /// What is done without it is measured.
    #[default]
    Before,
    /// The limit is larger for so long yet.
    Settle { left_ns: u64 },
    /// What is done with it is measured.
    After,
}

/// Trials of a larger limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Payoff {
    phase: Phase,
    measured_ns: u64,
    done: f64,
    successes: u64,
    rt_ns: u64,
    refused: bool,
    /// Of the last trial: done per second before it, `extra` before it, and by what share the limit grew.
    before_qps: f64,
    before_extra: f64,
    grew: f64,
    /// By what share the next one grows.
    growth: f64,
}

impl Default for Payoff {
    fn default() -> Self {
        let [growth, _most] = GROWTH;
        Self {
            phase: Phase::Before,
            measured_ns: 0,
            done: 0.0,
            successes: 0,
            rt_ns: 0,
            refused: false,
            before_qps: 0.0,
            before_extra: 0.0,
            grew: 0.0,
            growth,
        }
    }
}

impl Payoff {
    /// Takes a tick under a limit into account and says what `extra` is from now on.
    pub(super) fn step(&mut self, tick: &Step<'_>, limit: f64, extra: f64) -> f64 {
        let tick_ns = tick.sample.tick_ns.min(MEASURE_NS);
        if let Phase::Settle { left_ns } = &mut self.phase {
            *left_ns = left_ns.saturating_sub(tick_ns);
            if *left_ns == 0 {
                self.phase = Phase::After;
            }
            return extra;
        }
        self.measured_ns = self.measured_ns.saturating_add(tick_ns);
        self.done += tick.sample.done();
        self.successes = self.successes.saturating_add(tick.sample.successes);
        self.rt_ns = self.rt_ns.saturating_add(tick.sample.rt_ns);
        self.refused |= tick.sample.shed > 0;
        if self.measured_ns < MEASURE_NS {
            return extra;
        }
        let done_qps = self.done / seconds(self.measured_ns);
        let next = match self.phase {
            Phase::Before | Phase::Settle { .. } => self.try_more(tick, limit, extra, done_qps),
            Phase::After => self.judge(extra, done_qps),
        };
        (self.measured_ns, self.done, self.refused) = (0, 0.0, false);
        (self.successes, self.rt_ns) = (0, 0);
        next
    }

    /// A limit grows in a tick in which something is done, and never without one.
    fn try_more(&mut self, tick: &Step<'_>, limit: f64, extra: f64, done_qps: f64) -> f64 {
        if !self.refused || tick.sample.done() <= 0.0 {
            return extra;
        }
        let grown = (self.growth * limit).max(1.0);
        let [least, most] = SETTLE_NS;
        let mean_ns = self.rt_ns.checked_div(self.successes).unwrap_or(0);
        self.phase = Phase::Settle {
            left_ns: mean_ns.saturating_mul(2).clamp(least, most),
        };
        self.before_qps = done_qps;
        self.before_extra = extra;
        self.grew = grown / limit.max(1.0);
        extra + grown
    }

    fn judge(&mut self, extra: f64, done_qps: f64) -> f64 {
        self.phase = Phase::Before;
        let [growth, most] = GROWTH;
        if done_qps >= self.before_qps * (1.0 + PAYS * self.grew) {
            self.growth = (self.growth * 2.0).min(most);
            return extra;
        }
        self.growth = growth;
        extra.min(self.before_extra)
    }
}
