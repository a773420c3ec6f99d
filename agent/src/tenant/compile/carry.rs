//! State that a rule takes over when its count alone changed, where it means something else under the new count.
//!
//! | rule | state | under another count |
//! |---|---|---|
//! | windows, places, turns of a pace | counts and times | the same |
//! | a bucket for each value | tokens | the same; the step holds no more than a full bucket |
//! | strict | passes, and a line that they never fell below | a raise makes the line steeper than they were |
//! | warm-up | tokens out of a bucket of another size | as warm as it was |
//!
//! Decisions go on meanwhile. A line that is brought over early only makes the old rule stricter, so that comes
//! before the new set is in force. Warmth follows: a request that comes between is held to the new count, however
//! warm it finds the resource.

use std::time::Duration;

use tidegate_limits::quirks::Quirks;
use tidegate_limits::strict::{RuleLimit, ValueLimit};
use tidegate_limits::warm_up::WarmUp;
use tidegate_segment::board::{FlowLimit, WarmUpNumbers};
use tidegate_segment::ledger::Ledger;

use super::room::StateAllotment;
use super::{flow, nanos};
use crate::rule::param::ParamGrade;
use crate::rule::{Body, Param};

/// How the state of a rule is brought over to another count.
#[derive(Debug, Clone)]
pub enum Carry {
    /// Of a strict flow rule.
    Line(NumberChange<RuleLimit>),
    /// Of the values of a strict hot-parameter rule.
    Values {
        /// Those that no item names.
        others: NumberChange<ValueLimit>,
        /// Items, in their order.
        items: Vec<NumberChange<ValueLimit>>,
    },
    /// Of a warm-up rule.
    Warmth(NumberChange<WarmUp>),
}

/// From the old numbers to the new ones.
#[derive(Debug, Clone, Copy)]
pub struct NumberChange<T> {
    from: T,
    to: T,
}

impl Carry {
    /// From a rule to the one that takes over its state; `None` where that means the same.
    pub fn of(from: &Body, to: &Body) -> Option<Self> {
        match (from, to) {
            (Body::Flow(from), Body::Flow(to)) => match (flow::limit(from), flow::limit(to)) {
                (FlowLimit::Strict { limit, window_ns }, FlowLimit::Strict { limit: new, .. }) => {
                    let from = RuleLimit::new(limit, window_ns)?;
                    let to = RuleLimit::new(new, window_ns)?;
                    Some(Self::Line(NumberChange { from, to }))
                }
                (FlowLimit::WarmUp(from), FlowLimit::WarmUp(to))
                | (
                    FlowLimit::WarmUpPace { warm_up: from, .. },
                    FlowLimit::WarmUpPace { warm_up: to, .. },
                ) => Some(Self::Warmth(NumberChange {
                    from: warm_up(from),
                    to: warm_up(to),
                })),
                _ => None,
            },
            (Body::Param(from), Body::Param(to)) => of_values(from, to),
            _ => None,
        }
    }

    /// What comes before the new set is in force.
    pub fn before(&self, ledger: Ledger, held: StateAllotment) {
        match self {
            Self::Line(line) => {
                let carried = |word| ((), line.to.carry(word, line.from));
                let state = ledger.state(held.lines.start);
                // Each try that is lost means that a decision got on; so many in a row do not happen.
                let _carried = state.and_then(|state| state.word().step(carried));
            }
            Self::Values { others, items } => {
                ledger.change_values(held.sets, |state| others.to.carry(state, others.from));
                for (number, change) in (0..).zip(items) {
                    if let Some(item) = ledger.item(held.lines.start, number) {
                        item.change(|state| change.to.carry(state, change.from));
                    }
                }
            }
            Self::Warmth(_) => {}
        }
    }

    /// What comes when it is in force.
    pub fn after(&self, ledger: Ledger, held: StateAllotment) {
        if let (Self::Warmth(warmth), Some(state)) = (self, ledger.state(held.lines.start)) {
            let carried = |word| ((), warmth.to.carry(word, &warmth.from));
            let _carried: Option<()> = state.word().step(carried);
        }
    }
}

fn warm_up(numbers: WarmUpNumbers) -> WarmUp {
    let WarmUpNumbers {
        count,
        period_s,
        cold_factor,
    } = numbers;
    // With Sentinel's quirks no such state outlives its rule.
    WarmUp::new(count, period_s, cold_factor, Quirks::None)
}

fn of_values(from: &Param, to: &Param) -> Option<Carry> {
    let ParamGrade::Bucket {
        window,
        strict: true,
        ..
    } = to.grade
    else {
        return None;
    };
    let items = from.items.iter().zip(&to.items);
    let items = items.map(|(from, to)| of_value(from.count, to.count, window));
    Some(Carry::Values {
        others: of_value(from.count, to.count, window)?,
        items: items.collect::<Option<_>>()?,
    })
}

fn of_value(from: u32, to: u32, window: Duration) -> Option<NumberChange<ValueLimit>> {
    let limit = |count: u32| ValueLimit::new(count.min(ValueLimit::LIMIT_MAX), nanos(window));
    Some(NumberChange {
        from: limit(from)?,
        to: limit(to)?,
    })
}
