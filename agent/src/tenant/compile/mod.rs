//! Makes what the gate reads out of the rules of a resource.
//!
//! A resource with nothing but plain limits gets a record alone and its decisions take the short way
//! ([`plain`]). Any other gets a run of the rule table, in the order in which the gate asks; one file
//! per kind says what a rule becomes. With Sentinel's quirks every resource has its rules in the table,
//! since its order of events shows.

mod authority;
pub mod carry;
mod degrade;
mod flow;
pub mod inherit;
mod param;
pub mod plain;
mod pool;
pub mod room;
pub mod system;

use tidegate_abi::board::Needs;
use tidegate_limits::quirks::Quirks;
use tidegate_segment::board::{
    BoardRule as Line, FlowLimit, FlowRule, OriginTest, ParamRule, PoolSpan, ResourceRecord,
    RuleFault, RuleKind, Subject,
};

use super::rule_index::{IndexedRule, RuleIndex};
use crate::rule::flow::{Behavior, Grade};
use crate::rule::{Body, Flow};
use inherit::RuleForm;
use plain::{Limit, record_of};
pub use pool::Pool;
use room::Room;

/// A resource, compiled.
#[derive(Debug, Default)]
pub struct CompiledSet {
    /// Its record; where its rules begin in the table is for the caller to say.
    pub record: ResourceRecord,
    /// Its rules in the table.
    pub rules: Vec<Line>,
    /// Rules of it that found no room; they are not in force on it.
    pub left_out: Vec<RuleFault>,
}

/// What the rules of a resource are compiled with.
pub struct Compiler<'c> {
    /// The rules.
    pub limits: &'c RuleIndex,
    /// State lines and value sets.
    pub room: &'c mut Room,
    /// Words that rules refer to.
    pub pool: &'c mut Pool,
    /// The slot of a resource that rules name.
    pub slot_of: &'c dyn Fn(&str) -> Option<u32>,
}

impl std::fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").finish_non_exhaustive()
    }
}

impl Compiler<'_> {
    /// Compiles the rules of a resource.
    pub fn resource(&mut self, name: &str) -> CompiledSet {
        let placed = self.limits.of_resource(name);
        let needs = self.common_needs();
        if needs == Needs::default()
            && let Some(limits) = all_plain(&placed)
        {
            let record = record_of(limits);
            let watched = self.limits.is_related(name) && !record.needs.any(Needs::QPS);
            // A node keeps the last figures of one rule that observes; of two each has its own in the table.
            let observed = Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY;
            let observed_twice = record.needs.0 & observed == observed;
            if !watched && !observed_twice {
                return CompiledSet {
                    record,
                    ..CompiledSet::default()
                };
            }
        }
        self.in_table(name, &placed, needs)
    }

    fn in_table(&mut self, name: &str, placed: &[IndexedRule<'_>], needs: Needs) -> CompiledSet {
        let mut compiled = CompiledSet::default();
        for rule in placed {
            match self.line(name, rule, placed) {
                Ok(line) => compiled.rules.push(line),
                Err(fault) => compiled.left_out.push(fault),
            }
        }
        compiled.record.needs = with(needs, compiled.rules.iter().map(needs_of));
        if self.limits.is_related(name) {
            compiled.record.needs.0 |= Needs::COUNTED | Needs::SECONDS;
        }
        compiled
    }

    fn line(
        &mut self,
        name: &str,
        placed: &IndexedRule<'_>,
        all: &[IndexedRule<'_>],
    ) -> Result<Line, RuleFault> {
        let kind = match &placed.rule.body {
            Body::Authority(authority) => authority::kind(authority, self.pool),
            Body::Param(param) => param::kind(param, self.pool),
            Body::Flow(flow) => flow::kind(flow, all, self)?,
            Body::Degrade(degrade) => degrade::kind(degrade, self.quirks()),
            // Not among the rules of a resource.
            Body::System(_) => return Err(RuleFault::RulesFull(0)),
        };
        let wanted = room::StateDemand::of(&placed.rule.body);
        let pool = &*self.pool;
        let form = || RuleForm::of(&kind, |span| pool.words_of(span));
        let held = self.room.take((placed.index, name), wanted, form)?;
        Ok(Line {
            number: placed.number(),
            mode: placed.rule.mode,
            state: held.lines.start,
            quirks: self.quirks(),
            kind: with_sets(kind, held.sets),
        })
    }

    /// What a resource needs besides its own rules.
    fn common_needs(&self) -> Needs {
        let mut needs = 0;
        if self.limits.system().any() {
            needs |= Needs::SYSTEM;
        }
        if self.quirks().wanted() {
            // Sentinel counts inbound requests together whatever rules there are.
            needs |= Needs::QUIRKS | Needs::COUNTED | Needs::SECONDS | Needs::SYSTEM;
        }
        Needs(needs)
    }

    fn quirks(&self) -> Quirks {
        self.limits.rules().quirks().into()
    }
}

/// The record of the node of a resource with an origin, or in a context: it is counted, nothing else.
pub fn part_record(limits: &RuleIndex) -> ResourceRecord {
    let quirks: Quirks = limits.rules().quirks().into();
    let quirks = if quirks.wanted() { Needs::QUIRKS } else { 0 };
    ResourceRecord {
        needs: Needs(Needs::COUNTED | Needs::SECONDS | quirks),
        ..ResourceRecord::default()
    }
}

fn all_plain(placed: &[IndexedRule<'_>]) -> Option<Vec<Limit>> {
    let limits = placed
        .iter()
        .map(|placed| Limit::of(placed.rule, placed.number()));
    limits.collect()
}

fn with(needs: Needs, more: impl Iterator<Item = u32>) -> Needs {
    Needs(more.fold(needs.0, |all, one| all | one))
}

fn needs_of(line: &Line) -> u32 {
    let RuleKind::Flow(flow) = line.kind else {
        return Needs::RULES;
    };
    let warms = matches!(
        flow.limit,
        FlowLimit::WarmUp(_) | FlowLimit::WarmUpPace { .. }
    );
    let seconds = if warms { Needs::SECONDS } else { 0 };
    Needs::RULES | Needs::COUNTED | seconds | parts_of(&flow)
}

/// The parts of a resource that a rule counts apart.
const fn parts_of(flow: &FlowRule) -> u32 {
    match (flow.subject, flow.origin) {
        (Subject::Direct, OriginTest::Is(_) | OriginTest::Other(_)) => Needs::ORIGINS,
        (Subject::Chain(_), _) => Needs::CONTEXTS,
        (Subject::Direct | Subject::Relate(_), _) => 0,
    }
}

const fn with_sets(kind: RuleKind, sets: PoolSpan) -> RuleKind {
    if let RuleKind::Param(param) = kind {
        return RuleKind::Param(ParamRule { sets, ..param });
    }
    kind
}

/// Whole ns of a duration; the longest one allowed fits by far.
fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether a rule's own state is shaping state, which Sentinel builds anew with any accepted list.
pub(super) fn shapes(body: &Body) -> bool {
    matches!(
        body,
        Body::Flow(Flow {
            grade: Grade::Qps {
                behavior: Behavior::WarmUp { .. }
                    | Behavior::Pace { .. }
                    | Behavior::WarmUpPace { .. },
                ..
            },
            ..
        })
    )
}

#[cfg(test)]
mod fraction_tests;
