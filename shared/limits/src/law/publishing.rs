//! What a step comes to: limits, how closely decisions watch, and the operator's marks on top.

use tidegate_abi::decision::{Cause, ScopeState};

use super::estimate::Limits;
use super::evidence::gc_trouble;
use super::number::{ceil_u32, seconds};
use super::published::{PublishedLimits, Watch};
use super::settings::ThresholdAction;
use super::step::Step;
use super::{FAR_OVER, Law, is_near, marks, surge, thread_limit};

/// Decisions look at what is in flight once in 64 times each while it is far from the entry limit. Under
/// a limit so small that this would miss much of it, they look each time; such scopes do some 5000 requests a
/// second at most.
const SMALL_ENTRY: f64 = 1024.0;

impl Law {
    pub(super) fn publish(&mut self, tick: &Step<'_>, ineffective: bool) -> PublishedLimits {
        let settings = tick.settings;
        let limits = self.limits(tick);
        let held = tick.held;
        let capped = tick.sample.capped;
        let (state, cause, in_force) = self.in_force(tick, &limits);
        let short = self.is_short(settings) && !self.is_quiet(settings);
        let is_guess = self.estimate.is_cold();
        let resting = if is_guess {
            tick.sample.cpus.is_none()
        } else {
            self.is_quiet(settings)
        };
        let watch = if !short && resting {
            Watch::Rest
        } else if is_near(held, &limits) || limits.entry < SMALL_ENTRY {
            Watch::Each
        } else {
            Watch::Now
        };
        PublishedLimits {
            state,
            cause,
            enforcement: settings.enforcement,
            capped,
            entry: ceil_u32(limits.entry).saturating_add(capped),
            tight: ceil_u32(in_force).saturating_add(capped),
            short,
            watch,
            allowed_qps: self.allowed_qps(in_force, tick),
            held: ceil_u32(held).saturating_add(capped),
            surge_qps: self.surge_qps(tick, &limits),
            ineffective,
            cpu_mark: marks::cpu_marks(tick).map(|marks| marks.enter),
            strain: self.strain(tick),
            evidence: tick.evidence,
            demand: self.demand.share(),
            capacity_qps: self.estimate.capacity(),
            base_rt_s: self.estimate.base_rt_s(),
            incident_ns: self.estimate.incident_ns(),
            healthy_needed: self.run.needed(),
            healthy_seen: self.run.seen(),
            waits: self.waits,
            resting: self.resting,
            withheld_ns: self.withheld_ns(tick),
        }
    }

    /// Time until a withheld change fits into the hour, of the law's or of a mark's; 0 where none is withheld.
    fn withheld_ns(&self, tick: &Step<'_>) -> u64 {
        let most = tick.settings.release.most_changes_per_hour;
        let of_law = self.resting.then(|| self.budget.wait_ns(self.now_ns, most));
        let of_marks = self.marks.withheld_ns(tick);
        of_law.flatten().max(of_marks).unwrap_or(0)
    }

    /// Growth that is a surge. While the capacity is a guess, twice the declared entry limit in a tick: so much
    /// new work of which nothing is answered yet is more than a guess may let in.
    fn surge_qps(&self, tick: &Step<'_>, limits: &Limits) -> Option<u32> {
        if self.estimate.is_cold() {
            let far = limits.entry * f64::from(FAR_OVER);
            let cpus = tick.sample.cpus;
            let whole_s = seconds(tick.settings.tick.0).max(tick.sample.length_s());
            return cpus.map(|_known| surge::at_least(far / whole_s));
        }
        self.estimate.capacity().map(surge::least_qps)
    }

    /// State, cause and limit when the operator's marks have had their say.
    fn in_force(&mut self, tick: &Step<'_>, limits: &Limits) -> (ScopeState, Cause, f64) {
        let settings = tick.settings;
        let own = self.own_state();
        let overlay = self.marks.step(tick);
        if self.overload.is_some() && settings.marks.action == ThresholdAction::Shape {
            self.marks.stand_back();
        }
        let (state, cause) = overlay.over(own);
        // An active threshold without a queue, or shedding without effect: only the entry limit.
        let wide = self.widened || self.resting || (self.overload.is_none() && state != own.0);
        let limit = if wide { limits.entry } else { limits.tight };
        let threads = settings.threads.as_ref();
        match self.threads.step(&tick.sample, self.cpus, threads) {
            None => (state, cause, limit),
            Some(fewer) => {
                let (state, cause) = thread_limit::over((state, cause));
                let floor = f64::from(settings.tight.floor.max(1));
                (state, cause, fewer.max(floor).min(limit))
            }
        }
    }

    /// What strains the scope beside its CPU; threads first, as they lower a limit.
    fn strain(&self, tick: &Step<'_>) -> Option<Cause> {
        if self.threads.is_limited() {
            return Some(Cause::Threads);
        }
        gc_trouble(&tick.sample, &tick.settings.evidence).then_some(Cause::Gc)
    }

    fn own_state(&self) -> (ScopeState, Cause) {
        match self.overload {
            Some(cause) => (ScopeState::Overload, cause),
            None if self.estimate.is_cold() => (ScopeState::Cold, Cause::None),
            None => (ScopeState::Healthy, Cause::None),
        }
    }

    /// `C + (L − N) / horizon`, never under the floors.
    fn allowed_qps(&self, limit: f64, tick: &Step<'_>) -> Option<f64> {
        let rate = &tick.settings.rate;
        self.estimate.capacity().map(|capacity| {
            let room = (limit - tick.held) / rate.horizon_s;
            (capacity + room)
                .min(self.unseen.most(self.estimate.healthy_capacity()))
                .max(capacity * rate.least_share)
                .max(rate.floor_qps)
        })
    }
}
