//! Parts of a resource that rules count apart: the requests of an origin, and those in a context.

use tidegate_abi::board::Needs;

use super::{Gate, Request};
use crate::board::{Board, FlowRule, OriginTest, RuleKind, Slot, Subject, View};

/// Which parts of a resource rules count apart for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Its origin.
    pub origin: bool,
    /// Its context.
    pub context: bool,
}

impl Board {
    /// Whether a slot still belongs to whom it was given to.
    #[inline]
    pub fn is_held(&self, slot: Slot) -> bool {
        let head = self.head(slot.index);
        head.is_some_and(|head| head.generation == slot.generation)
    }
}

impl Gate {
    /// Which parts of a resource may be counted apart; of most resources none, and this is one load.
    #[inline]
    pub fn may_have_parts(&self, slot: Slot) -> Parts {
        let needs = self.board.head(slot.index).map(|head| head.needs);
        needs.map_or_else(Parts::default, |needs| Parts {
            origin: needs.any(Needs::ORIGINS),
            context: needs.any(Needs::CONTEXTS),
        })
    }

    /// The request without nodes that were given back: the resource's own serves.
    pub(super) fn with_held_parts<'a>(&self, mut request: Request<'a>) -> Request<'a> {
        for name in [&mut request.origin, &mut request.context] {
            name.node = name.node.filter(|node| self.board.is_held(*node));
        }
        request
    }

    /// Which parts of a resource rules in force count apart for a request, by its hashes.
    pub fn parts_wanted(&self, slot: Slot, request: &Request<'_>) -> Parts {
        let Some((view, record)) = self.board.view_of(slot.index) else {
            return Parts::default();
        };
        let places = (0..record.rules).map(|place| record.rules_first.saturating_add(place));
        let mut wanted = Parts::default();
        for rule in places.filter_map(|place| view.rule(place)) {
            if let RuleKind::Flow(flow) = rule.kind {
                wanted.origin |= counts_origin(&view, &flow, request.origin.hash);
                wanted.context |= counts_context(&flow, request.context.hash);
            }
        }
        wanted
    }
}

fn counts_origin(view: &View, flow: &FlowRule, caller: u64) -> bool {
    let concerned = match flow.origin {
        OriginTest::Any => false,
        OriginTest::Is(hash) => caller == hash,
        OriginTest::Other(named) => !view.contains(named, caller),
    };
    concerned && caller != 0 && matches!(flow.subject, Subject::Direct)
}

fn counts_context(flow: &FlowRule, context: u64) -> bool {
    context != 0 && matches!(flow.subject, Subject::Chain(wanted) if wanted == context)
}
