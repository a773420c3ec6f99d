//! The adaptive law of one scope: how much work is admitted, from what a tick measured.
//!
//! Overload needs a queue *and* evidence. `N` is what is in flight or waits at the door, `P` says
//! that the CPU is short, `E_lim` is the wide limit and `L` the tight one (see `estimate`):
//!
//! ```text
//!                   N >= E_lim and P or a surge (see `surge`),
//!                   or N >= 2 E_lim, or decisions have refused near E_lim
//!      ┌──────────────────────────────────────────────────────┐
//!      │                                                      ▼
//!  ┌──────┐  healthy ticks with successes   ┌─────────┐   ┌──────────┐
//!  │ cold │ ──────────────────────────────► │ healthy │   │ overload │ admits while N < L
//!  └──────┘                                 └─────────┘   └──────────┘
//!      cold: while N < E_lim, or without P      ▲             │
//!      unless N surges; healthy: without P      └─────────────┘
//!      up to 2 E_lim
//!                         demand < 0.9 for 5 ticks in a row (doubling up to
//!                         20 when overload came back within 30 s)
//!
//!  inside overload the limit is L, or E_lim while
//!    ineffective: shedding does not lower the pressure (see `effect`)
//!    resting: it has ended, and another change would be one too many in this
//!             hour; with a queue and evidence L holds again
//!
//!  beside it: a plain threshold of the operator that is active makes the state
//!  overload with the entry limit (`shape`) or reject (`reject`), see `marks`;
//!  too many live threads make it overload with a lower limit for a while,
//!  see `thread_limit`
//! ```
//!
//! The first step into overload is made by the decisions themselves, from the words of the board:
//! they refuse at `E_lim` without waiting for a tick. The next tick confirms it and tightens.
//!
//! Callers without permits are not in flight. Where they are many, the tasks that wait for a CPU stand
//! for them, and the allowed QPS holds them (see `unseen`).
//!
//! Under a least rate the law does not act: a handful of requests is noise. A cold scope acts on evidence and on
//! a surge only, for its limits are a guess: more in flight alone may be requests that wait for others.
//!
//! With [`LawChoice::Sentinel`] none of this judges but Sentinel's plain check, see `sentinel`.

mod base_time;
mod demand;
mod effect;
mod estimate;
mod evidence;
mod heap;
mod history;
mod marks;
mod number;
mod payoff;
mod published;
mod publishing;
mod sample;
mod sentinel;
pub mod settings;
mod slack;
mod step;
mod surge;
mod thread_limit;
mod tick_length;
mod unseen;

use tidegate_abi::decision::{Cause, ScopeState};

pub use evidence::Evidence;
pub use history::HISTORY_TICKS;
pub use published::{PublishedLimits, Watch};
pub use sample::Sample;
pub use settings::{Enforcement, LawChoice, LawSettings, ThresholdAction};
pub use surge::is_surge;

use crate::change_budget::ChangeBudget;
use crate::healthy_run::HealthyRun;
use demand::Demand;
use effect::EffectCheck;
use estimate::{Estimate, Limits, Situation};
use heap::HeapFloor;
use history::{History, Tick};
use marks::Marks;
use number::{ceil_u32, real};
use payoff::Payoff;
use sentinel::Sentinel;
use slack::Slack;
use step::Step;
use thread_limit::ThreadLimit;
use unseen::Unseen;

/// Past this many times the entry limit a scope is in overload, whatever its CPU says. Decisions and
/// the law use the same.
///
/// Evidence comes a tick or two after a steep step, and until then this much work queues: at twice,
/// whoever is admitted waits 400 ms or so. Three times was tried in the lab: at ten times the capacity
/// a tenth of the first six seconds' work was answered too late.
pub const FAR_OVER: u32 = 2;

/// A count that decisions hold just under a limit is at it, from this share of the limit on.
const HELD_UNDER: f64 = 0.75;

/// Ticks of short CPU that are overload where most callers hold no permit and no queue can be read.
const UNSEEN_TICKS: u32 = 10;

/// Ticks of short CPU after which an overload that began without is one of the CPU.
const SHORT_TICKS: u32 = 5;

/// Ticks whose mean is "lately".
const LATELY_TICKS: usize = 10;

/// The law of one scope.
#[derive(Debug, Clone)]
pub struct Law {
    now_ns: u64,
    cpus: f64,
    history: History,
    estimate: Estimate,
    slack: Slack,
    payoff: Payoff,
    effect: EffectCheck,
    marks: Marks,
    threads: ThreadLimit,
    heap: HeapFloor,
    run: HealthyRun,
    /// Why the scope is in overload; `None` while it is not.
    overload: Option<Cause>,
    /// Whether the overload is one of requests that wait for others: the CPU was not short when it began, and has not
    /// been for long since. What piled up may fill it for a moment.
    waits: bool,
    /// Whether the overload has ended and stays for want of changes.
    resting: bool,
    /// Whether shedding has no effect and something has been done since.
    widened: bool,
    budget: ChangeBudget,
    demand: Demand,
    sentinel: Sentinel,
    unseen: Unseen,
    /// How long the CPU has been short, ns; a late tick counts for one.
    short_ns: u64,
    published: PublishedLimits,
}

impl Default for Law {
    fn default() -> Self {
        Self {
            now_ns: 0,
            cpus: 1.0,
            history: History::default(),
            estimate: Estimate::default(),
            slack: Slack::default(),
            payoff: Payoff::default(),
            effect: EffectCheck::default(),
            marks: Marks::default(),
            threads: ThreadLimit::default(),
            heap: HeapFloor::default(),
            run: HealthyRun::default(),
            overload: None,
            waits: false,
            resting: false,
            widened: false,
            budget: ChangeBudget::default(),
            demand: Demand::default(),
            sentinel: Sentinel::default(),
            unseen: Unseen::default(),
            short_ns: 0,
            published: PublishedLimits::START,
        }
    }
}

impl Law {
    /// What the last step said.
    pub fn published(&self) -> &PublishedLimits {
        &self.published
    }

    /// Load average, for all CPUs, and CPU share as Sentinel's check last sampled them.
    pub fn sentinel_samples(&self) -> (Option<f64>, Option<f64>) {
        self.sentinel.samples()
    }

    /// Takes the sample of a tick and says what holds until the next one.
    pub fn step(&mut self, sample: &Sample, settings: &LawSettings) -> PublishedLimits {
        let mut sample = sample.measured();
        sample.heap_used = self.heap.step(&sample);
        self.now_ns = self.now_ns.saturating_add(sample.tick_ns);
        self.cpus = sample.cpus.unwrap_or(self.cpus);
        if settings.kind == LawChoice::Sentinel {
            self.published = self.check_plainly(&sample, settings);
            return self.published;
        }
        let queue_mark = self.estimate.queue_mark(settings);
        let part = settings.tick.part(sample.tick_ns);
        self.unseen.update(&sample, part);
        let held = sample.held() + self.unseen.waiting(&sample);
        let tick = Step {
            evidence: Evidence::of(&sample, queue_mark, &settings.evidence),
            busy: sample.busy.unwrap_or_else(|| self.used_share(held)),
            held,
            threads_over: self.threads.is_limited(),
            part,
            sample,
            settings,
        };
        self.short_ns = if tick.evidence.short() {
            let tick_ns = tick.sample.tick_ns.min(settings.tick.0).max(1);
            self.short_ns.saturating_add(tick_ns)
        } else {
            0
        };
        self.learn(&tick);
        let limits = self.limits(&tick);
        if self.overload.is_none() {
            self.watch(&tick, &limits);
        } else {
            self.recover(&tick, &limits);
        }
        // A mark of the operator makes it overload too.
        let overload = self.overload.is_some() || self.published.state == ScopeState::Overload;
        self.unseen.pace(&tick, overload);
        let ineffective = self.overload.is_some() && self.feed_back(&tick, &limits);
        self.widened = ineffective && (self.widened || tick.sample.done() > 0.0);
        self.published = self.publish(&tick, ineffective);
        self.published
    }

    /// Sentinel's check. The law forgets its overload: it begins anew when it is asked again.
    fn check_plainly(&mut self, sample: &Sample, settings: &LawSettings) -> PublishedLimits {
        self.overload = None;
        self.waits = false;
        self.resting = false;
        let said = self.sentinel.step(sample, self.now_ns, &settings.marks);
        PublishedLimits {
            state: said.state,
            cause: said.cause,
            enforcement: settings.enforcement,
            tight: said.limit,
            allowed_qps: said.allowed_qps,
            held: ceil_u32(sample.held()),
            cpu_mark: settings.marks.cpu.map(|marks| marks.enter),
            healthy_needed: 1,
            ..PublishedLimits::START
        }
    }

    fn used_share(&self, held: f64) -> f64 {
        let PublishedLimits { tight, capped, .. } = self.published;
        (held / f64::from(tight.saturating_sub(capped).max(1))).min(1.0)
    }

    fn situation(&self, tick: &Step<'_>) -> Situation {
        // By the limit of the last tick: this one's is not known before it is learnt from.
        let PublishedLimits { entry, capped, .. } = self.published;
        let far = f64::from(entry.saturating_sub(capped)) * f64::from(FAR_OVER);
        Situation {
            cpus: self.cpus,
            busy: tick.busy,
            overload: self.overload.is_some(),
            far_over: is_far_over(tick, far),
        }
    }

    fn limits(&self, tick: &Step<'_>) -> Limits {
        self.estimate
            .limits(&self.situation(tick), self.slack.extra(), tick.settings)
    }

    /// Takes the tick into the history, the estimates and the mean demand.
    fn learn(&mut self, tick: &Step<'_>) {
        let healthy = self.overload.is_none() && tick.healthy();
        // Queueing makes an overloaded service slow; that is no incident.
        let teaches = self.overload.is_some() || self.estimate.judge(&tick.sample);
        let length = tick.settings.tick;
        self.history
            .push(Tick::of(&tick.sample, self.cpus, healthy, teaches), length);
        // With a full CPU what was admitted without a permit is not what was done.
        let full = tick.busy >= tick.settings.estimate.full;
        let unknown = self.unseen.dominate() && full && self.estimate.capacity().is_some();
        if !unknown {
            let now = self.situation(tick);
            self.estimate
                .update(&self.history, &tick.sample, &now, tick.settings);
        }
        self.demand.update(tick);
    }

    /// Enters overload when there is a queue, and evidence or far too much of a queue.
    fn watch(&mut self, tick: &Step<'_>, limits: &Limits) {
        if self.is_quiet(tick.settings) {
            return;
        }
        let held = tick.held;
        let short = self.is_short(tick.settings);
        let queue = held >= limits.entry;
        // Decisions that refuse at a limit keep the count just under it.
        let refused = tick.sample.shed > 0;
        let refused_near = refused && self.published.short && is_near(held, limits);
        let far_over = is_far_over(tick, limits.entry * f64::from(FAR_OVER));
        let surge = held >= limits.entry * HELD_UNDER && self.surged(tick);
        let unseen = self.unseen.dominate() && tick.sample.waiters.is_none();
        let unseen = unseen && self.short_ns >= tick.settings.tick.nearly(UNSEEN_TICKS);
        let too_many = surge || (far_over && !self.estimate.is_cold());
        if (queue && short) || too_many || refused_near || unseen {
            self.overload = Some(tick.cause());
            self.waits = !tick.evidence.short();
            self.run.enter(self.now_ns, &tick.settings.release.healthy);
            self.budget.enter(self.now_ns);
            self.slack.enter();
            self.payoff = Payoff::default();
            self.demand.enter();
            let lately = self.history.sums(LATELY_TICKS);
            self.effect.enter(lately.per_second(lately.done));
        }
    }

    /// Whether what is held, with what was refused of it, grew faster in the tick than by the capacity.
    fn surged(&self, tick: &Step<'_>) -> bool {
        let (before, sample) = (self.published.surge(), &tick.sample);
        let held = tick.held + real(sample.shed) + f64::from(sample.capped);
        // It cannot have grown by more than what came.
        let came = sample.offered() + sample.accept_queue.map_or(0.0, f64::from);
        let held = held.min(f64::from(before.held) + came);
        is_surge(before, ceil_u32(held), sample.tick_ns)
    }

    /// Leaves overload when demand has stayed low for long enough, or rests in it where the hour has
    /// had its changes.
    fn recover(&mut self, tick: &Step<'_>, limits: &Limits) {
        self.waits &= self.short_ns < tick.settings.tick.nearly(SHORT_TICKS);
        let release = &tick.settings.release;
        // Left now, it would begin again with the next tick.
        let far_over = is_far_over(tick, limits.calm_entry * f64::from(FAR_OVER));
        // The CPU tells nothing of the demand on what they wait for; refusals do.
        let refuses = self.waits && tick.sample.shed > 0;
        let low = self.demand.share() < release.demand_under && !far_over && !refuses;
        let ended = self.run.count(low, tick.sample.tick_ns);
        let most = release.most_changes_per_hour;
        if ended && self.budget.has_room(self.now_ns, most) {
            self.run.leave(self.now_ns);
            self.overload = None;
            self.waits = false;
            self.resting = false;
            return;
        }
        let again = tick.held >= limits.entry && self.is_short(tick.settings);
        self.resting = (self.resting || ended) && !again;
        if tick.evidence.short() {
            self.overload = Some(tick.cause());
        }
    }

    /// Adapts the tight limit to what shedding did; true when it did nothing. Where nothing is refused there is
    /// nothing to see.
    fn feed_back(&mut self, tick: &Step<'_>, limits: &Limits) -> bool {
        if self.waits {
            let extra = self.payoff.step(tick, limits.tight, self.slack.extra());
            self.slack.set(extra, limits, &tick.settings.tight);
        } else {
            self.slack
                .update(&tick.pressed(self.cpus), limits, &tick.settings.tight);
        }
        if tick.settings.enforcement == Enforcement::Observe {
            return false;
        }
        let lately = self.history.sums(LATELY_TICKS);
        self.effect
            .update(&tick.observation(&lately), &tick.settings.effect)
    }

    /// Whether the CPU has been short for long enough to act on (P). A cold scope waits for one
    /// tick only, however short: work piles up while nothing is known of it.
    fn is_short(&self, settings: &LawSettings) -> bool {
        let least_ns = if self.estimate.is_cold() {
            1
        } else {
            settings.tick.nearly(settings.evidence.ticks.max(1))
        };
        self.short_ns >= least_ns
    }

    /// Whether so little is offered that the law does not act.
    fn is_quiet(&self, settings: &LawSettings) -> bool {
        let lately = self.history.sums(LATELY_TICKS);
        // A window of few ticks must not read one request as a rate.
        lately.offered / lately.length_s.max(1.0) < settings.entry.least_qps
    }
}

/// Whether so much is held that it is overload whatever the CPU says. Decisions that refuse hold the count just
/// under their limit.
fn is_far_over(tick: &Step<'_>, far: f64) -> bool {
    tick.held >= far || (tick.sample.shed > 0 && tick.held >= far * HELD_UNDER)
}

/// Whether in flight is at half the entry limit or more.
fn is_near(held: f64, limits: &Limits) -> bool {
    held >= limits.entry * 0.5
}
