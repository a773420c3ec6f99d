//! What a walk counts, once all rules were asked.

use tidegate_abi::board::Needs;

use super::{NODES, Walk};
use crate::board::{Slot, View};
use crate::clock::Clock;
use crate::gate::request::{PassExtras, PassHoldings, remember};
use crate::gate::{Ask, Gate, GateVerdict, Pass, Place, Refusal};
use crate::ledger::{Cell, WindowAdmission};

impl Gate {
    /// Commits: places in flight first, then one exchange of each pass window.
    pub(super) fn finish<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        walk: &Walk<'_>,
    ) -> GateVerdict {
        match self.commit(ask, view, walk) {
            Ok((place, held)) => {
                let pass = ask.admit(place);
                GateVerdict::Admitted(Pass {
                    entered_ns: walk.entered_ns,
                    waited_ns: walk.waited_ns,
                    kept: PassExtras::Walked(held),
                    ..pass
                })
            }
            Err(refusal) => {
                let refusal = refusal.spread(ask.now_ns);
                self.count_refused_late(view, walk.slot, &refusal, ask.now_ns);
                self.put_back(view, walk, ask.now_ns);
                GateVerdict::Refused(ask.refuse(refusal))
            }
        }
    }

    fn commit<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        walk: &Walk<'_>,
    ) -> Result<(Place, PassHoldings), Refusal> {
        let record = view.record(walk.slot.index);
        let quirks = record.is_some_and(|record| record.needs.any(Needs::QUIRKS));
        let looked = quirks && walk.waited_ns > 0;
        let walk = &if looked { walk.without_limits() } else { *walk };
        let held = self.begin_values(walk)?;
        let places = self
            .commit_places(ask, walk)
            .inspect_err(|_refusal| self.end_values(&held))?;
        // It counts a borrowed pass on the node that lent it alone.
        let counts = !quirks || walk.borrowed.is_none();
        if quirks && counts {
            self.use_buckets(view, walk.nodes(), ask.now_ns);
        }
        if counts && let Err(refusal) = self.commit_passes(ask, view, walk) {
            places.iter().flatten().for_each(Cell::give_back);
            self.end_values(&held);
            return Err(refusal);
        }
        // A node without a place of its own yet is counted in flight too.
        for (slot, place) in walk.nodes().into_iter().zip(&places).skip(1) {
            if let (Some(slot), None) = (slot, place)
                && let Some(books) = self.books(ask.lane, slot)
            {
                books.mark();
                books.cell.take();
            }
        }
        if counts {
            self.count_inbound(ask, view, walk);
        }
        let [first, ..] = places;
        let place = if first.is_some() {
            Place::Taken
        } else {
            Place::Open
        };
        Ok((place, held))
    }

    fn commit_places<C>(
        &self,
        ask: &Ask<'_, C>,
        walk: &Walk<'_>,
    ) -> Result<[Option<Cell>; NODES], Refusal> {
        let mut places = [None; NODES];
        for ((slot, limits), place) in walk.nodes().into_iter().zip(walk.limits).zip(&mut places) {
            let Some(slot) = slot else { continue };
            if limits.inflight == u32::MAX {
                continue;
            }
            *place = match self.take_place(slot, ask.request.count, limits.inflight, true) {
                Ok(cell) => Some(cell),
                Err(inflight) => {
                    places.iter().flatten().for_each(Cell::give_back);
                    let rule = limits.inflight_rule;
                    return Err(Refusal::concurrency(rule, inflight, limits.inflight));
                }
            };
        }
        Ok(places)
    }

    fn commit_passes<C: Clock>(
        &self,
        ask: &Ask<'_, C>,
        view: &View,
        walk: &Walk<'_>,
    ) -> Result<(), Refusal> {
        let count = ask.request.count;
        let mut counted: [Option<(Slot, u16)>; NODES] = [None; NODES];
        for (slot, limits) in walk.nodes().into_iter().zip(walk.limits) {
            let Some(slot) = slot.filter(|slot| walk.borrowed != Some(*slot)) else {
                continue;
            };
            let Some(node) = self.ledger.node(slot.index) else {
                continue;
            };
            let needs = view
                .record(slot.index)
                .map_or_else(Needs::default, |record| record.needs);
            if limits.passes == u32::MAX && !needs.any(Needs::COUNTED | Needs::QPS) {
                continue;
            }
            let limit = node.room(ask.now_ns, limits.passes);
            match node.admit(ask.clock, ask.now_ns, count, limit) {
                WindowAdmission::Admitted(epoch) => {
                    if needs.any(Needs::SECONDS) {
                        node.count_second(ask.now_ns, count);
                    }
                    remember(&mut counted, (slot, epoch));
                }
                WindowAdmission::Full {
                    passed,
                    retry_after_ns,
                } => {
                    for (slot, epoch) in counted.into_iter().flatten() {
                        if let Some(node) = self.ledger.node(slot.index) {
                            node.take_back(ask.now_ns, count, epoch);
                        }
                    }
                    let rule = limits.passes_rule;
                    return Err(Refusal::qps(rule, passed, limits.passes, retry_after_ns));
                }
            }
        }
        Ok(())
    }
}
