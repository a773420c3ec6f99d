//! The operator's plain thresholds, beside the law.

use tidegate_abi::decision::{Cause, ScopeState};

use super::evidence::gc_trouble;
use super::settings::ThresholdAction;
use super::step::Step;
use crate::threshold::{self, Threshold};

/// The thresholds of one scope.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    cpu: Threshold,
    /// Whether the CPU mark is active for a value that only the lowered mark calls too much.
    lowered: bool,
    load: Threshold,
}

/// What the active thresholds ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlay {
    active: Option<(ThresholdAction, Cause)>,
}

impl Overlay {
    /// The state and cause that hold when the law alone says `own`.
    pub(super) fn over(self, own: (ScopeState, Cause)) -> (ScopeState, Cause) {
        match self.active {
            Some((ThresholdAction::Reject, cause)) => (ScopeState::Reject, cause),
            Some((ThresholdAction::Shape, cause)) if own.0 != ScopeState::Overload => {
                (ScopeState::Overload, cause)
            }
            Some((ThresholdAction::Shape, _)) | None => own,
        }
    }
}

impl Marks {
    /// The law has taken over: it knows more than the CPU mark, which starts anew when the law
    /// lets go.
    pub(super) fn stand_back(&mut self) {
        self.cpu = Threshold::default();
        self.lowered = false;
    }

    /// Takes a tick into account. Trouble with garbage collection, and too many threads, lower the CPU marks.
    pub(super) fn step(&mut self, tick: &Step<'_>) -> Overlay {
        let (sample, settings) = (&tick.sample, tick.settings);
        let cpu = self.step_cpu(tick);
        let load = step(
            &mut self.load,
            sample.load_per_cpu,
            sample.tick_ns,
            settings.marks.load,
        );
        let cause = if cpu {
            Some(tick.cause_of_busy())
        } else if load {
            Some(Cause::Load)
        } else {
            None
        };
        Overlay {
            active: cause.map(|cause| (settings.marks.action, cause)),
        }
    }

    /// Time until a mark that is passed may act again, where the hour has had its changes.
    pub(super) fn withheld_ns(&self, tick: &Step<'_>) -> Option<u64> {
        let cpu = cpu_marks(tick).and_then(|marks| self.cpu.withheld_ns(&marks));
        let load = tick.settings.marks.load;
        cpu.max(load.and_then(|marks| self.load.withheld_ns(&marks)))
    }

    /// What the lowered mark began ends when the mark is back: under the usual mark the value is healthy then.
    fn step_cpu(&mut self, tick: &Step<'_>) -> bool {
        let (sample, settings) = (&tick.sample, tick.settings);
        let usual = settings.marks.cpu;
        let used = sample.used(settings.marks.cpu_use);
        let over_usual = usual
            .zip(used)
            .is_some_and(|(marks, used)| used >= marks.enter);
        let mut marks = cpu_marks(tick);
        let lowering = shift(tick) > 0.0;
        if self.lowered && !lowering {
            marks = marks.map(|marks| threshold::ThresholdSettings {
                leave: marks.enter,
                ..marks
            });
        }
        let was_active = self.cpu.is_active();
        let active = step(&mut self.cpu, used, sample.tick_ns, marks);
        let began_lowered = self.lowered || (!was_active && lowering);
        self.lowered = active && began_lowered && !over_usual;
        active
    }
}

/// The CPU marks of a tick, lower while there is trouble with garbage collection or there are too many threads.
pub(super) fn cpu_marks(tick: &Step<'_>) -> Option<threshold::ThresholdSettings> {
    let marks = tick.settings.marks.cpu;
    marks.map(|marks| marks.lowered(shift(tick)))
}

/// How far the CPU marks are lowered: as far as the larger trouble asks for.
fn shift(tick: &Step<'_>) -> f64 {
    let evidence = &tick.settings.evidence;
    let collecting = gc_trouble(&tick.sample, evidence);
    let by_heap = if collecting { evidence.gc_shift } else { 0.0 };
    let threads = tick.settings.threads.filter(|_threads| tick.threads_over);
    by_heap.max(threads.map_or(0.0, |threads| threads.cpu_shift))
}

/// Steps a threshold; one that is not set is forgotten.
fn step(
    threshold: &mut Threshold,
    value: Option<f64>,
    tick_ns: u64,
    marks: Option<threshold::ThresholdSettings>,
) -> bool {
    if let Some(marks) = marks {
        return threshold.step(value, tick_ns, &marks);
    }
    *threshold = Threshold::default();
    false
}
