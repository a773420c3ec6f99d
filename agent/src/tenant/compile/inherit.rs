//! State that rules of the life before have left: a rule of the first set that says the same on the same resource takes
//! it over.
//!
//! A rule is what it was compiled to. The old board has just that, and it is all that the state depends on.

use std::sync::Arc;

use tidegate_segment::board::{
    BoardRule as Line, FlowRule, OriginTest, ParamLimit, ParamRule, PoolSpan, RuleKind,
};

use super::room::{ITEMS_OF_LINE, Room, StateAllotment};

/// Words of an item in the pool.
const ITEM_WORDS: u32 = 2;

/// What a rule says, whatever room it has and wherever its words are.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleForm {
    kind: RuleKind,
    words: Vec<u64>,
}

impl RuleForm {
    /// The form of a rule whose runs of the pool `words_of` tells.
    pub fn of(kind: &RuleKind, words_of: impl Fn(PoolSpan) -> Vec<u64>) -> Self {
        let nowhere = PoolSpan::default();
        let (kind, words) = match *kind {
            RuleKind::Authority { list, origins } => {
                let origins_nowhere = RuleKind::Authority {
                    list,
                    origins: nowhere,
                };
                (origins_nowhere, words_of(origins))
            }
            RuleKind::Param(param) => {
                let without = ParamRule {
                    items: nowhere,
                    sets: nowhere,
                    ..param
                };
                (RuleKind::Param(without), words_of(param.items))
            }
            RuleKind::Flow(
                flow @ FlowRule {
                    origin: OriginTest::Other(named),
                    ..
                },
            ) => {
                let without = FlowRule {
                    origin: OriginTest::Other(nowhere),
                    ..flow
                };
                (RuleKind::Flow(without), words_of(named))
            }
            kind @ (RuleKind::Flow(_) | RuleKind::Degrade { .. }) => (kind, Vec::new()),
        };
        Self { kind, words }
    }
}

/// What the rules of a name have left.
pub(super) type Inherited = std::collections::HashMap<Arc<str>, Vec<(RuleForm, StateAllotment)>>;

impl Room {
    /// Takes the room of a rule of the life before out of what is free, for a rule that says the same. `agent` is the
    /// agent's own seat: what ran for it has ended.
    pub fn inherit(&mut self, name: &Arc<str>, form: RuleForm, line: &Line, agent: (u32, u32)) {
        let held = held_by(line);
        if !self.take_at(held) {
            return;
        }
        if let RuleKind::Param(ParamRule {
            limit: ParamLimit::Concurrency,
            sets,
            ..
        }) = line.kind
        {
            self.ledger().end_runs(sets, agent);
        }
        let of_name = self.inherited.entry(Arc::clone(name)).or_default();
        of_name.push((form, held));
    }
}

/// The room that a line names.
fn held_by(line: &Line) -> StateAllotment {
    let items_of_line = u32::try_from(ITEMS_OF_LINE).unwrap_or(u32::MAX);
    let (of_items, sets) = match line.kind {
        RuleKind::Param(param) => {
            let items = param.items.length / ITEM_WORDS;
            (items.div_ceil(items_of_line), param.sets)
        }
        RuleKind::Authority { .. } | RuleKind::Flow(_) | RuleKind::Degrade { .. } => {
            (0, PoolSpan::default())
        }
    };
    StateAllotment {
        lines: PoolSpan {
            start: line.state,
            length: of_items.saturating_add(1),
        },
        sets,
    }
}
