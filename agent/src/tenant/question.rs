//! Questions in names, as the doors for callers without pages carry them.

use tidegate_abi::board::{Needs, name_hash};
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{GateVerdict, Request, RequestName};

use super::Tenant;
use super::decide::Waits;
use super::proxy_seats::SeatedCaller;
use super::rule_index::Part;

/// Most tries where the slot that a name had just now is given back under the decision.
const TRIES: u32 = 3;

/// What a caller asks for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// Name of the resource, checked.
    pub resource: &'q str,
    /// Who calls, checked; empty if unknown.
    pub origin: &'q str,
    /// In which context, checked; empty if in none.
    pub context: &'q str,
    /// All of the request but the names.
    pub request: Request<'q>,
}

impl Tenant {
    /// Decides on a question of a caller, and counts it in flight in the caller's seat. The
    /// caller waits where a rule lets wait, see [`Tenant::enter`].
    pub async fn decide(
        &self,
        caller: &SeatedCaller,
        question: &Question<'_>,
        waits: Waits<'_>,
    ) -> GateVerdict {
        let mut verdict = GateVerdict::Stale;
        for _try in 0..TRIES {
            let (slot, request) = self.look_up(question, caller.caller.uid);
            verdict = self.enter(caller, slot, request, waits).await;
            if verdict != GateVerdict::Stale {
                break;
            }
        }
        verdict
    }

    /// Decides once and holds nothing, see [`Tenant::admit_once`].
    pub async fn decide_once(
        &self,
        caller: &SeatedCaller,
        question: &Question<'_>,
        waits: Waits<'_>,
    ) -> GateVerdict {
        let mut verdict = GateVerdict::Stale;
        for _try in 0..TRIES {
            let (slot, request) = self.look_up(question, caller.caller.uid);
            verdict = self.admit_once(caller, slot, request, waits).await;
            if verdict != GateVerdict::Stale {
                break;
            }
        }
        verdict
    }

    /// The slot of a question's resource, and the request with the nodes of its names.
    fn look_up<'q>(&self, question: &Question<'q>, uid: u32) -> (Slot, Request<'q>) {
        let resource = question.resource;
        let slot = self.directory().resolve_by(resource, uid).slot;
        let name = |part, name| self.name((resource, slot), part, name, uid);
        let request = Request {
            origin: name(Part::Origin, question.origin),
            context: name(Part::Context, question.context),
            ..question.request
        };
        (slot, request)
    }

    /// An origin or context of a request for a resource; its node is made where a rule needs one.
    pub fn name(&self, resource: (&str, Slot), part: Part, name: &str, uid: u32) -> RequestName {
        if name.is_empty() {
            return RequestName::default();
        }
        RequestName {
            hash: name_hash(name.as_bytes()),
            node: self.part(resource, (part, name), uid),
        }
    }

    /// The node of a resource for an origin or context, where a rule needs one and there is room.
    pub fn part(
        &self,
        (resource, slot): (&str, Slot),
        (part, name): (Part, &str),
        uid: u32,
    ) -> Option<Slot> {
        let record = self.board().record(slot.index);
        let has_rules = record.is_some_and(|record| record.needs.any(Needs::RULES));
        if !has_rules {
            return None;
        }
        self.directory().resolve_part(resource, part, name, uid)
    }
}
