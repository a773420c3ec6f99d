//! One look at all threads of a group, summed up while it goes on.

use tidegate_abi::signal::SignalId;

use super::super::meter::to_f64;
use super::super::parse::task_stat::TaskState;
use super::super::reading::Readings;
use super::thread::TaskRates;
use super::thread_group::is_gc;
use crate::procfs::{Missing, NamedSource as _, NoValue};

pub(super) const STAT: &str = "/proc/PID/task/TID/stat";
const SCHEDSTAT: &str = "/proc/PID/task/TID/schedstat";

/// The sums of a look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    threads: u64,
    runnable: u64,
    blocked: u64,
    rates: TaskRates,
    gc_threads: u64,
    gc_cpus: f64,
    /// Why threads were not seen that may be there.
    hidden: Option<Missing>,
    /// Why the rates are not known.
    no_rates: Option<NoValue>,
}

impl Look {
    /// Nothing seen yet; the first look has no rates.
    pub(super) fn begin(is_first: bool) -> Self {
        Self {
            no_rates: is_first.then_some(NoValue::FirstSample),
            ..Self::default()
        }
    }

    /// Counts a live thread.
    pub(super) fn add(&mut self, name: &[u8], state: TaskState) {
        self.threads = self.threads.saturating_add(1);
        let of = |is: bool| u64::from(is);
        self.runnable = self
            .runnable
            .saturating_add(of(state == TaskState::Runnable));
        self.blocked = self.blocked.saturating_add(of(state == TaskState::Blocked));
        self.gc_threads = self.gc_threads.saturating_add(of(is_gc(name)));
    }

    /// Adds how fast the counters of a thread grow.
    pub(super) fn add_rates(&mut self, name: &[u8], rates: TaskRates) {
        self.rates.used_cpus += rates.used_cpus;
        self.rates.waiting += rates.waiting;
        self.rates.slices_per_s += rates.slices_per_s;
        if is_gc(name) {
            self.gc_cpus += rates.used_cpus;
        }
    }

    /// Notes that threads may be there that were not seen; the first reason stays.
    pub(super) fn hide(&mut self, missing: Missing) {
        self.hidden.get_or_insert(missing);
    }

    /// Notes that the counters of a thread were not told.
    pub(super) fn without_rates(&mut self, fault: NoValue) {
        self.no_rates.get_or_insert(fault);
    }

    /// Whether no thread was hidden from it.
    pub(super) fn saw_all(&self) -> bool {
        self.hidden.is_none()
    }

    /// Whether no thread was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.threads == 0
    }

    /// Puts what was seen into the readings.
    pub(super) fn tell(&self, out: &mut Readings) {
        let seen = self.hidden.map_or(Ok(()), Err);
        let count = |count: u64| seen.map(|()| to_f64(count));
        out.set(SignalId::Threads, count(self.threads));
        out.set(SignalId::Runnable, count(self.runnable));
        out.set(SignalId::Blocked, count(self.blocked));
        let known = self.no_rates.map_or(Ok(()), Err).named(SCHEDSTAT);
        let rate = |rate: f64| seen.and(known).map(|()| rate);
        out.set(SignalId::RunqueueWait, rate(self.rates.waiting));
        out.set(SignalId::ContextSwitches, rate(self.rates.slices_per_s));
        out.set(
            SignalId::GcCpu,
            seen.and(known).and_then(|()| self.gc_share().named(STAT)),
        );
    }

    /// CPU time of the garbage collectors' threads ÷ CPU time of all threads.
    fn gc_share(&self) -> Result<f64, NoValue> {
        if self.gc_threads == 0 {
            return Err(NoValue::NoCollector);
        }
        if self.rates.used_cpus <= 0.0 {
            return Err(NoValue::Idle);
        }
        Ok(self.gc_cpus / self.rates.used_cpus)
    }
}

/// Says of all that comes of looks that the one under way is not finished yet.
pub(super) fn withdraw(out: &mut Readings) {
    for id in [
        SignalId::Runnable,
        SignalId::Blocked,
        SignalId::RunqueueWait,
        SignalId::ContextSwitches,
        SignalId::GcCpu,
    ] {
        out.set(id, Err(NoValue::StillLooking).named(STAT));
    }
}
