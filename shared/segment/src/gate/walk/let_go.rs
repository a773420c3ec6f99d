//! Nodes that were given back while a walk waited.

use super::{Limits, NODES, Walk};
use crate::board::Slot;
use crate::gate::request::PassHoldings;

impl Walk<'_> {
    /// Lets go of nodes that were given back while it waited: the resource's own is held to their limits.
    pub(in crate::gate) fn let_go(&mut self, is_held: impl Fn(Slot) -> bool) {
        let PassHoldings {
            origin, context, ..
        } = &mut self.held;
        let names = [&mut self.request.origin, &mut self.request.context];
        let mut gone = [Limits::NONE; NODES - 1];
        let [_own, of_parts @ ..] = &mut self.limits;
        let parts = [origin, context].into_iter().zip(names).zip(of_parts);
        for (((node, name), limits), gone) in parts.zip(&mut gone) {
            if node.is_some_and(|node| !is_held(node)) {
                (*node, name.node) = (None, None);
                *gone = core::mem::replace(limits, Limits::NONE);
            }
        }
        for limits in gone {
            self.limit_passes(self.slot, limits.passes, limits.passes_rule);
            self.limit_inflight(self.slot, limits.inflight, limits.inflight_rule);
        }
    }
}
