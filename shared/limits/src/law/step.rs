//! What a step knows of its tick, beside what the law remembers.

use tidegate_abi::decision::Cause;

use super::effect::Observation;
use super::evidence::{Evidence, of_others};
use super::history::Sums;
use super::sample::Sample;
use super::settings::LawSettings;
use super::slack::Pressed;

/// A tick that the law judges.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub sample: Sample,
    pub evidence: Evidence,
    /// Busy share of the CPUs; where it is not measured, the used share of the tight limit.
    pub busy: f64,
    /// Requests in the service and at its door (N), those included that only their tasks tell of.
    pub held: f64,
    /// Whether too many threads hold a limit down, by the tick before.
    pub threads_over: bool,
    /// What of a whole tick it is, up to 1.
    pub part: f64,
    pub settings: &'a LawSettings,
}

impl Step<'_> {
    /// Whether tasks queued for a CPU.
    pub(super) fn queueing(&self) -> bool {
        self.evidence.has(Evidence::RUN_QUEUE)
    }

    /// Whether the tick's response times are those of a service that has CPU to spare.
    pub(super) fn healthy(&self) -> bool {
        let estimate = &self.settings.estimate;
        let collecting = self
            .sample
            .gc_share
            .is_some_and(|share| share >= estimate.gc_share);
        !collecting && !self.queueing() && self.busy < estimate.healthy_under
    }

    /// Why the operator's CPU mark is passed.
    pub(super) fn cause_of_busy(&self) -> Cause {
        self.evidence
            .cause_of_busy(&self.sample, &self.settings.evidence)
    }

    /// Why the CPU is short.
    pub(super) fn cause(&self) -> Cause {
        self.evidence.cause(&self.sample, &self.settings.evidence)
    }

    /// The tick as slack feedback sees it.
    pub(super) fn pressed(&self, cpus: f64) -> Pressed {
        Pressed {
            waiting: self.sample.waiters.is_some_and(|waiters| waiters >= cpus),
            busy: self.busy,
            queueing: self.sample.waiters.map(|_| self.queueing()),
            refused: self.sample.shed > 0,
            done: self.sample.done() > 0.0,
            part: self.part,
        }
    }

    /// The tick as the check of the effect sees it.
    pub(super) fn observation(&self, lately: &Sums) -> Observation {
        Observation {
            tick_ns: self.sample.tick_ns,
            done_qps: lately.per_second(lately.done),
            short: self.evidence.short(),
            own_work: self.sample.own.is_some()
                && !of_others(&self.sample, &self.settings.evidence),
        }
    }
}
