//! Where a request counts, Sentinel uses the present buckets of its nodes, and with that takes over what was
//! borrowed for them.

use tidegate_abi::board::Needs;

use super::NODES;
use crate::board::{Slot, View};
use crate::gate::Gate;

impl Gate {
    /// Uses the buckets of the nodes of a resource, the first of them, where it has the quirks.
    pub(in crate::gate) fn use_buckets(
        &self,
        view: &View,
        nodes: [Option<Slot>; NODES],
        now_ns: u64,
    ) {
        let [Some(own), ..] = nodes else { return };
        let quirks = |needs: Needs| needs.any(Needs::QUIRKS);
        if view
            .record(own.index)
            .is_none_or(|record| !quirks(record.needs))
        {
            return;
        }
        for slot in nodes.into_iter().flatten() {
            if let Some(node) = self.ledger.node(slot.index) {
                node.use_bucket(now_ns);
            }
        }
    }
}
