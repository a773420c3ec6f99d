//! A session: one seat on one pair of pages, the questions of a process without a seat, or the time
//! before there is an agent.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_abi::decision::Outcome;
use tidegate_abi::message::{ArgsBuffer, EnterRequest, Part, TOKEN};
use tidegate_limits::window::COUNT_MAX;
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{ClassAndOrigin, Parts, Pass, PlainRequest, Refusal, Request, Ticket};
use tidegate_segment::lane;
use tidegate_segment::os::fork::ForkToken;

use crate::entry::Entry;
use crate::life::Life;
use crate::parts::{Known, PartKey};
use crate::pending::{PendingEntry, Progress};
use crate::question::About;
use crate::seat::SeatedGate;
use crate::slot_word::SessionNumber;
use crate::status::Transport;
use crate::way::Way;

/// What a decision needs, replaced as a whole when the client connects anew.
#[derive(Debug)]
pub(crate) struct Session {
    /// Copied out of the life, because each decision looks at it.
    token: ForkToken,
    number: SessionNumber,
    way: Way,
    life: &'static Life,
    /// The session that has kept this one's seat and ledger, once there is one: permits go back to it.
    kept_by: OnceLock<&'static Self>,
}

/// Names of a request, besides that of the resource; empty if there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Names<'a> {
    /// Who calls.
    pub(crate) origin: &'a str,
    /// In which context.
    pub(crate) context: &'a str,
}

impl Names<'_> {
    pub(crate) const NONE: Self = Self {
        origin: "",
        context: "",
    };
}

impl Session {
    pub(crate) fn new(number: SessionNumber, life: &'static Life, way: Way) -> Self {
        Self {
            token: life.token(),
            number,
            way,
            life,
            kept_by: OnceLock::new(),
        }
    }

    /// Says which session goes on with this one's seat and ledger.
    pub(crate) fn keep_in(&self, next: &'static Self) {
        // There is one: a session is followed by one other.
        let _first: Result<(), &'static Self> = self.kept_by.set(next);
    }

    /// The session that has its seat and ledger now. Its board tells what became of them.
    #[inline]
    fn holder(&self) -> &Self {
        match self.kept_by.get() {
            Some(next) => next.last_holder(),
            None => self,
        }
    }

    #[cold]
    fn last_holder(&self) -> &Self {
        let mut last = self;
        while let Some(next) = last.kept_by.get() {
            last = next;
        }
        last
    }

    pub(crate) const fn number(&self) -> SessionNumber {
        self.number
    }

    pub(crate) const fn life(&self) -> &'static Life {
        self.life
    }

    /// Whether this process forked off the one whose session it is.
    #[inline]
    pub(crate) fn forked(&self) -> bool {
        self.token.forked()
    }

    /// Whether there are pages to decide on.
    pub(crate) const fn is_seated(&self) -> bool {
        matches!(self.way, Way::Seated(_))
    }

    /// The door that it asks at.
    pub(crate) const fn door(&self) -> Option<Transport> {
        match self.way {
            Way::Open => None,
            Way::Seated(_) => Some(Transport::Shm),
            Way::Asking(_) => Some(Transport::Socket),
        }
    }

    /// The id of a rule in the set in force.
    pub(crate) fn rule_id(&self, number: u32) -> Option<Arc<str>> {
        let seated = self.way.seated();
        let rules = seated.map(|seated| seated.gate.board().rules_generation());
        self.life.rule_id(number, rules)
    }

    /// Called in a forked child: leaves to the parent what is the parent's alone.
    pub(crate) fn let_go(&self) {
        if let Way::Asking(asker) = &self.way {
            asker.let_go();
        }
    }

    /// Takes the slot of an entry from the pages themselves, as long as the agent has not answered:
    /// the slot of its name if the board has one, else the one that such names share.
    pub(crate) fn find(&self, entry: &Entry) {
        if let Way::Seated(seated) = &self.way {
            let found = seated.gate.board().find(entry.name());
            entry.unless_resolved(self.number, found.unwrap_or(Slot::OVERFLOW));
        }
    }

    /// Decides where that takes no more than the express way of the pages, for the request that `plain` makes of a
    /// slot. `None` = nothing was counted: decide with [`Session::begin`].
    #[inline(always)]
    pub(crate) fn express(
        &'static self,
        entry: &Entry,
        plain: impl FnOnce(Slot) -> Option<PlainRequest>,
    ) -> Option<Result<Ticket, Refusal>> {
        if self.forked() {
            return None;
        }
        let Way::Seated(seated) = &self.way else {
            return None;
        };
        let slot = entry.slot(self.number)?;
        // The express way knows of accept queues what the board says: it is not for who sees its own queue where
        // that counts.
        if self.life.listeners().any() && seated.gate.is_pressed() {
            return None;
        }
        seated.gate.express(seated, lane::current(), plain(slot)?)
    }

    /// The same where that took more than the express way, and still no rule of the table but a breaker.
    #[inline]
    pub(crate) fn express_closely(
        &'static self,
        entry: &Entry,
        request: &Request<'_>,
    ) -> Option<Result<Ticket, Refusal>> {
        if self.forked() {
            return None;
        }
        let Way::Seated(seated) = &self.way else {
            return None;
        };
        let plain = PlainRequest::of(entry.slot(self.number)?, request)?;
        if self.life.listeners().any() && seated.gate.is_pressed() {
            return None;
        }
        let (lane, caller) = (lane::current(), ClassAndOrigin::of(request));
        seated.gate.express_closely(seated, lane, plain, caller)
    }

    /// Decides as for a name that got no slot.
    #[cold]
    pub(crate) fn begin_overflow<'a>(
        &'static self,
        entry: &Arc<Entry>,
        request: Request<'a>,
        patience: Duration,
    ) -> Progress<'a> {
        let Way::Seated(seated) = &self.way else {
            return Progress::Decided(None);
        };
        let place = (entry, Slot::OVERFLOW);
        self.begin_at_length(seated, place, (request, Names::default()), patience)
    }

    /// Decides, or says how long to wait. `Decided(None)` if this session cannot decide: it is the parent's, has
    /// neither pages nor an agent that answers, does not know the resource, or its seat was taken away. Pages know
    /// origin and context by the hashes in the request; the agent is told their names.
    pub(crate) fn begin<'a>(
        &'static self,
        entry: &Arc<Entry>,
        request: Request<'a>,
        names: Names<'_>,
        patience: Duration,
    ) -> Progress<'a> {
        if self.forked() {
            return Progress::Decided(None);
        }
        let Way::Seated(seated) = &self.way else {
            return self.ask(entry, request, names, patience);
        };
        let Some(slot) = entry.slot(self.number) else {
            return Progress::Decided(None);
        };
        self.begin_at_length(seated, (entry, slot), (request, names), patience)
    }

    fn begin_at_length<'a>(
        &'static self,
        seated: &'static SeatedGate,
        (entry, slot): (&Arc<Entry>, Slot),
        (request, names): (Request<'a>, Names<'_>),
        patience: Duration,
    ) -> Progress<'a> {
        let mut request = request;
        if request.origin.hash != 0 || request.context.hash != 0 {
            self.name_parts(seated, entry, slot, &mut request, names);
        }
        if self.life.listeners().any() && seated.gate.is_pressed() {
            request.waiting = self.life.listeners().waiting();
        }
        let lane = lane::current();
        let step = seated.gate.enter_at_length(seated, lane, slot, request);
        PendingEntry::progress(self.token, seated, &step, patience)
    }

    /// Gives a request the nodes of its origin and context, where rules want them.
    fn name_parts(
        &self,
        seated: &SeatedGate,
        entry: &Arc<Entry>,
        slot: Slot,
        request: &mut Request<'_>,
        names: Names<'_>,
    ) {
        let may = seated.gate.may_have_parts(slot);
        let node = |part, hash, name| {
            let key = PartKey::of(part, hash);
            match entry.parts().look(seated.gate.board(), self.number, key) {
                Known::Node(node) => Some(node),
                Known::Own | Known::NoPlace => None,
                Known::Unknown => {
                    let wanted = seated.gate.parts_wanted(slot, request);
                    self.ask_for_part(seated, entry, part, key, name, wanted)
                }
            }
        };
        let (origin, context) = (request.origin.hash, request.context.hash);
        let of_origin = (may.origin && origin != 0)
            .then(|| node(Part::Origin, origin, names.origin))
            .flatten();
        let of_context = (may.context && context != 0)
            .then(|| node(Part::Context, context, names.context))
            .flatten();
        request.origin.node = of_origin;
        request.context.node = of_context;
    }

    /// Asks the agent for the node of an origin or context that rules count apart, and waits a little
    /// for it; without it, the own node of the resource serves.
    #[cold]
    fn ask_for_part(
        &self,
        seated: &SeatedGate,
        entry: &Arc<Entry>,
        part: Part,
        key: PartKey,
        name: &str,
        wanted: Parts,
    ) -> Option<Slot> {
        let is_wanted = match part {
            Part::Origin => wanted.origin,
            Part::Context => wanted.context,
        };
        if !is_wanted || tidegate_abi::check_name(name.as_bytes()).is_err() {
            return None;
        }
        let _answered = self.life.ask(About::Part {
            entry: Arc::clone(entry),
            part,
            key,
            name: name.into(),
        })?;
        match entry.parts().look(seated.gate.board(), self.number, key) {
            Known::Node(node) => Some(node),
            Known::Own | Known::NoPlace | Known::Unknown => None,
        }
    }

    /// Asks the agent to decide.
    #[cold]
    fn ask<'a>(
        &'static self,
        entry: &Arc<Entry>,
        request: Request<'_>,
        names: Names<'_>,
        patience: Duration,
    ) -> Progress<'a> {
        let Way::Asking(asker) = &self.way else {
            return Progress::Decided(None);
        };
        let args = ArgsBuffer::of(request.args);
        let heard = asker.enter(EnterRequest {
            resource: entry.name(),
            origin: told(names.origin),
            context: told(names.context),
            count: request.count.min(COUNT_MAX),
            class: request.class,
            direction: request.direction,
            prioritized: request.prioritized,
            args: args.args(),
            wait_at_most_ms: u32::try_from(patience.as_millis()).unwrap_or(u32::MAX),
            waits_itself: true,
        });
        PendingEntry::heard(self.token, asker, heard)
    }

    /// Gives a permit of this session back. One that was inherited over a fork is the parent's.
    #[inline(always)]
    pub(crate) fn give_back(&self, ticket: &Ticket, outcome: Outcome) {
        if self.forked() {
            return;
        }
        if let Way::Seated(seated) = &self.holder().way {
            let lane = lane::current();
            seated.gate.give_back(seated, lane, ticket, outcome);
        }
    }

    /// The same for one that came the long way.
    #[inline(never)]
    pub(crate) fn exit(&self, pass: &Pass, outcome: Outcome) {
        if self.forked() {
            return;
        }
        if let Way::Seated(seated) = &self.holder().way {
            seated.gate.exit(seated, lane::current(), *pass, outcome);
        }
    }

    /// The same for a permit that the agent holds.
    #[cold]
    pub(crate) fn exit_asked(&self, token: [u8; TOKEN], outcome: Outcome) {
        if self.forked() {
            return;
        }
        if let Way::Asking(asker) = &self.way {
            asker.exit(token, outcome);
        }
    }
}

/// An origin or context as the agent is told it. One that cannot be a name is no reason to go unasked, and is
/// not an unknown one either, which some rules let through: it becomes a name that no rule lists.
fn told(origin: &str) -> &str {
    let is_name = origin.is_empty() || tidegate_abi::check_name(origin.as_bytes()).is_ok();
    if is_name { origin } else { "?" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_cannot_be_a_name_is_neither_unknown_nor_listed() {
        assert_eq!(told(""), "");
        assert_eq!(told("shop"), "shop");
        assert_eq!(told("a\nb"), "?");
        assert_eq!(told(&"x".repeat(256)), "?");
    }
}
