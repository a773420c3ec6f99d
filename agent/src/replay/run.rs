//! One scope of a replay.

use std::sync::Arc;

use tidegate_abi::decision::ScopeState;
use tidegate_limits::law::{Law, LawSettings, PublishedLimits};

use super::report::{ReplayLimits, ScopeReplayReport, Shares, Transition};
use super::tally::Tally;
use crate::control::Plan;
use crate::recording::line::{ScopeLine, TickLine};

/// Most transitions that are told one by one.
const TRANSITIONS_MAX: usize = 10_000;

/// A scope of a replay.
#[derive(Debug)]
pub struct ScopeReplay {
    scope: ScopeLine,
    settings: Arc<LawSettings>,
    law: Box<Law>,
    time_ns: u64,
    /// Time of the clock, ns since 1970; `None` where the file does not say it.
    pub(super) clock_ns: Option<u64>,
    /// Time and ticks that figures are of.
    counted_ns: u64,
    ticks: u64,
    /// Ticks in each state, in the order of [`ScopeState::ALL`].
    in_state: [u64; ScopeState::ALL.len()],
    ineffective_ticks: u64,
    /// Ticks after which the agent had published another state.
    other_ticks: u64,
    changes: u64,
    transitions: Vec<Transition>,
    tally: Tally,
    /// Least and most tight limit while in overload.
    tight: Option<(u32, u32)>,
    pub(super) seen: Seen,
}

/// How far the expectations have looked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub changes: u64,
    pub offered: u64,
    pub refused: u64,
}

/// A scope after a tick.
#[derive(Debug, Clone, Copy)]
pub struct ReplayMoment<'a> {
    /// Its name.
    pub name: &'a str,
    /// Time since the beginning, ns.
    pub time_ns: u64,
    /// What the law says.
    pub published: &'a PublishedLimits,
    /// Time of the clock, ns since 1970; `None` where the file does not say it.
    pub clock_ns: Option<u64>,
    /// Whether it is in the figures.
    pub counts: bool,
    /// Requests that were offered in the tick.
    pub offered: u64,
    /// Those of them that would have been refused.
    pub refused: u64,
}

impl ScopeReplay {
    /// A scope of which nothing is known.
    pub(super) fn of(scope: ScopeLine, plan: &Plan) -> Self {
        Self {
            settings: plan.settings_of(scope.cgroup.as_deref().map(AsRef::as_ref)),
            scope,
            law: Box::default(),
            time_ns: 0,
            clock_ns: None,
            counted_ns: 0,
            ticks: 0,
            in_state: [0; ScopeState::ALL.len()],
            ineffective_ticks: 0,
            other_ticks: 0,
            changes: 0,
            transitions: Vec::new(),
            tally: Tally::default(),
            tight: None,
            seen: Seen::default(),
        }
    }

    /// The same from a time of the clock on.
    pub(super) fn at(self, clock_ns: Option<u64>) -> Self {
        Self { clock_ns, ..self }
    }

    /// The agent began anew.
    pub(super) fn forget(&mut self) {
        *self.law = Law::default();
    }

    /// Another configuration is in force.
    pub(super) fn follow(&mut self, plan: &Plan) {
        self.settings = plan.settings_of(self.scope.cgroup.as_deref().map(AsRef::as_ref));
    }

    /// What stands in its place now. Figures go on; what the law learned goes with the scope.
    pub(super) fn is_now(&mut self, scope: ScopeLine, plan: &Plan) {
        if scope.new || scope.cgroup != self.scope.cgroup {
            self.forget();
        }
        self.scope = scope;
        self.follow(plan);
    }

    /// Takes a tick. What was before `since_ns` teaches the law and is in no figure.
    pub(super) fn step(&mut self, tick: &TickLine, since_ns: Option<u64>) -> ReplayMoment<'_> {
        let before = *self.law.published();
        let sample = tick.sample();
        let refused_before = self.tally.refused;
        let after = self.law.step(&sample, &self.settings);
        self.time_ns = self.time_ns.saturating_add(sample.tick_ns);
        let clock_ns = self
            .clock_ns
            .map(|clock| clock.saturating_add(sample.tick_ns));
        self.clock_ns = clock_ns;
        let counts = since_ns.is_none_or(|since| clock_ns.is_none_or(|clock| clock >= since));
        if counts {
            self.tally.take(&sample, &before);
            self.count(&before, &after, tick, sample.tick_ns);
        } else {
            self.tally.follow(&sample);
        }
        ReplayMoment {
            name: &self.scope.name,
            time_ns: self.time_ns,
            clock_ns,
            counts,
            published: self.law.published(),
            offered: sample.passed.saturating_add(sample.shed),
            refused: self.tally.refused.saturating_sub(refused_before),
        }
    }

    fn count(
        &mut self,
        before: &PublishedLimits,
        after: &PublishedLimits,
        tick: &TickLine,
        tick_ns: u64,
    ) {
        self.counted_ns = self.counted_ns.saturating_add(tick_ns);
        self.ticks = self.ticks.saturating_add(1);
        let states = self.in_state.iter_mut().zip(ScopeState::ALL);
        for (ticks, state) in states {
            *ticks = ticks.saturating_add(u64::from(*state == after.state));
        }
        self.ineffective_ticks = self
            .ineffective_ticks
            .saturating_add(u64::from(after.ineffective));
        let other = tick.was.is_some_and(|was| was != after.state.into());
        self.other_ticks = self.other_ticks.saturating_add(u64::from(other));
        self.note(before, after);
    }

    fn note(&mut self, before: &PublishedLimits, after: &PublishedLimits) {
        if after.state == ScopeState::Overload {
            let (least, most) = self.tight.unwrap_or((u32::MAX, 0));
            self.tight = Some((least.min(after.tight), most.max(after.tight)));
        }
        if before.state == after.state {
            return;
        }
        self.changes = self.changes.saturating_add(1);
        if self.transitions.len() < TRANSITIONS_MAX {
            self.transitions.push(Transition {
                at_s: seconds(self.time_ns),
                at_unix_s: self.clock_ns.map(|clock| clock / 1_000_000_000),
                from: before.state.name(),
                to: after.state.name(),
                cause: after.cause.name(),
            });
        }
    }

    /// What the law says now.
    pub(super) fn published(&self) -> &PublishedLimits {
        self.law.published()
    }

    /// Changes, offered and refused requests so far.
    pub(super) fn figures(&self) -> Seen {
        Seen {
            changes: self.changes,
            offered: self.tally.offered,
            refused: self.tally.refused,
        }
    }

    /// The result.
    pub(super) fn report(self) -> ScopeReplayReport {
        let published = *self.law.published();
        let share = |state: ScopeState| {
            let found = ScopeState::ALL.iter().position(|one| *one == state);
            let ticks = found.and_then(|at| self.in_state.get(at));
            ratio(ticks.copied().unwrap_or(0), self.ticks)
        };
        ScopeReplayReport {
            seconds: seconds(self.counted_ns),
            ticks: self.ticks,
            until_unix_s: self.clock_ns.map(|clock| clock / 1_000_000_000),
            offered: self.tally.offered,
            refused_recorded: self.tally.recorded,
            refused_replayed: self.tally.refused,
            time_in: Shares {
                healthy: share(ScopeState::Healthy),
                cold: share(ScopeState::Cold),
                overload: share(ScopeState::Overload),
                reject: share(ScopeState::Reject),
            },
            ticks_other_than_recorded: self.other_ticks,
            ineffective_ticks: self.ineffective_ticks,
            changes: self.changes,
            transitions: self.transitions,
            limits: ReplayLimits {
                entry: published.entry,
                tight: published.tight,
                tight_least: self.tight.map(|(least, _most)| least),
                tight_most: self.tight.map(|(_least, most)| most),
                allowed_qps: published.allowed_qps,
                capacity_qps: published.capacity_qps,
                base_rt_ms: published.base_rt_s.map(|seconds| seconds * 1e3),
            },
            name: self.scope.name,
            cgroup: self.scope.cgroup,
        }
    }
}

/// A span in seconds.
pub(super) fn seconds(span_ns: u64) -> f64 {
    tidegate_limits::number::double(span_ns) * 1e-9
}

/// `part / whole`; nothing of nothing is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    use tidegate_limits::number::double;
    if whole == 0 {
        return 0.0;
    }
    double(part) / double(whole)
}
