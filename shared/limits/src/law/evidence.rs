//! Whether the CPU is short, and who is to blame.

use tidegate_abi::decision::Cause;

use super::sample::Sample;
use super::settings;

/// What spoke for a short CPU in a tick: a set of the bits below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence(u8);

impl Evidence {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The scope's CPUs were busy.
    pub const BUSY: Self = Self(1);
    /// Tasks queued for a CPU.
    pub const RUN_QUEUE: Self = Self(1 << 1);
    /// The own quota throttled the scope.
    pub const THROTTLED: Self = Self(1 << 2);
    /// The kernel's pressure information says so.
    pub const PRESSURE: Self = Self(1 << 3);

    /// Whether this bit is set.
    pub fn has(self, bit: Self) -> bool {
        self.0 & bit.0 != 0
    }

    /// The words of the bits that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let words = [
            (Self::BUSY, "cpu"),
            (Self::RUN_QUEUE, "run_queue"),
            (Self::THROTTLED, "quota"),
            (Self::PRESSURE, "pressure"),
        ];
        words
            .into_iter()
            .filter(move |(bit, _word)| self.has(*bit))
            .map(|(_bit, word)| word)
    }

    /// Whether the CPU is short (P).
    pub fn short(self) -> bool {
        self != Self::NONE
    }

    fn with(self, bit: Self, set: bool) -> Self {
        if set { Self(self.0 | bit.0) } else { self }
    }

    /// The evidence of a sample. `queue_mark` is the number of waiters that is still no queue.
    pub(super) fn of(sample: &Sample, queue_mark: f64, marks: &settings::EvidenceSettings) -> Self {
        let shift = if gc_trouble(sample, marks) {
            marks.gc_shift
        } else {
            0.0
        };
        let throttled = over(sample.throttle, marks.throttle)
            && over(sample.throttled_time, marks.throttled_time);
        Self::NONE
            .with(Self::BUSY, over(sample.busy, marks.busy - shift))
            .with(Self::RUN_QUEUE, over(sample.waiters, queue_mark))
            .with(Self::THROTTLED, throttled)
            .with(Self::PRESSURE, over(sample.psi_cpu, marks.psi_cpu))
    }

    /// Why the CPU is short, the most telling cause first; in flight alone where nothing speaks.
    pub(super) fn cause(self, sample: &Sample, marks: &settings::EvidenceSettings) -> Cause {
        if let Some(cause) = self.named(sample, marks) {
            cause
        } else if self.has(Self::BUSY) {
            whose_work(sample, marks)
        } else if self.has(Self::RUN_QUEUE) {
            Cause::RunQueue
        } else if self.has(Self::PRESSURE) {
            Cause::Pressure
        } else {
            Cause::InFlight
        }
    }

    /// Why the CPUs are busy.
    pub(super) fn cause_of_busy(
        self,
        sample: &Sample,
        marks: &settings::EvidenceSettings,
    ) -> Cause {
        self.named(sample, marks)
            .unwrap_or_else(|| whose_work(sample, marks))
    }

    /// The cause that a signal of its own names.
    fn named(self, sample: &Sample, marks: &settings::EvidenceSettings) -> Option<Cause> {
        if self.has(Self::THROTTLED) {
            Some(Cause::Quota)
        } else if over(sample.steal, marks.steal) {
            Some(Cause::Steal)
        } else if gc_trouble(sample, marks) || over(sample.gc_share, marks.gc_share) {
            Some(Cause::Gc)
        } else {
            None
        }
    }
}

fn whose_work(sample: &Sample, marks: &settings::EvidenceSettings) -> Cause {
    if of_others(sample, marks) {
        Cause::Neighbour
    } else {
        Cause::Cpu
    }
}

/// Whether there were more full collections than are no trouble, or they leave the heap as good as full.
pub(super) fn gc_trouble(sample: &Sample, marks: &settings::EvidenceSettings) -> bool {
    let often = sample.full_gc.is_some_and(|count| count > marks.full_gc);
    often || over(sample.heap_used, marks.heap)
}

/// Whether the scope itself used less than its share of the busy CPU.
pub(super) fn of_others(sample: &Sample, marks: &settings::EvidenceSettings) -> bool {
    match (sample.own, sample.busy) {
        (Some(own), Some(busy)) => own < busy * marks.own_share,
        _ => false,
    }
}

fn over(value: Option<f64>, mark: f64) -> bool {
    value.is_some_and(|value| value >= mark)
}
