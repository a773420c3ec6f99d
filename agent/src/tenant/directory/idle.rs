//! Slots that nobody uses any more are given back, so that names made up by callers do not fill the pages
//! for ever.
//!
//! Nodes for origins and contexts go after the idle time, always: they are made again in no time. A resource that
//! rules do not name goes when slots or room for rules become short. What the rules of the table remember of it
//! (patterns', breakers for all) must be over: nothing has changed there for as long as any of them remembers, and
//! every breaker is closed. A slot that is taken back rests, as a seat does, and is then given to another name,
//! and the room of its rules with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate_segment::board::{BoardRule, Slot};
use tidegate_segment::ledger::NodeCounts;

use super::super::breakers::lines;
use super::super::compile::room::StateAllotment;
use super::super::seats::Seats;
use super::name::is_part;
use super::{ResourceDirectory, Writer, memory};

/// How long a slot rests: a thread that was held up inside a decision must have gone on and found it taken back.
const REST_NS: u64 = 10_000_000_000;

/// Slots are short when fewer than one in this many are left.
const SHORT_SHARE: u32 = 4;

/// Most slots that are looked at in one round.
const LOOKS: usize = 16_384;
/// Words of a line of the memory.
const LINE: usize = 8;
/// The look at a resource goes through the rows of all seats; that at a node for a part reads one line.
const RESOURCE_COSTS: usize = 128;

/// Who is on the way back.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// In the order of the slots.
    seen: Vec<Seen>,
    /// Where the next round goes on.
    next: usize,
    /// Slots that were taken back, the oldest first.
    resting: VecDeque<Resting>,
    /// Slots that may be given.
    free: Vec<Slot>,
    /// Whether the rule table has places of resources that went.
    gaps: bool,
}

/// A slot that was taken back.
#[derive(Debug)]
struct Resting {
    slot: Slot,
    /// Where its rules kept their state.
    held: Vec<StateAllotment>,
    since_ns: u64,
}

/// What was seen on a slot, and since when it has been like that; 0 = not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    mark: [u64; 3],
    since_ns: u64,
}

impl Idle {
    /// Slots that may be given again.
    pub(super) fn free(&self) -> u32 {
        u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// A slot that nobody has since `since_ns`, and whose rules have left nothing.
    pub(super) fn rests(&mut self, slot: Slot, since_ns: u64) {
        self.resting.push_back(Resting {
            slot,
            held: Vec::new(),
            since_ns,
        });
    }

    /// The next of them.
    pub(super) fn peek(&self) -> Option<Slot> {
        self.free.last().copied()
    }

    /// It was given.
    pub(super) fn given(&mut self) {
        self.free.pop();
    }

    /// Whether a slot has looked the same for so long.
    fn is_idle(&mut self, place: usize, mark: [u64; 3], now_ns: u64, idle_ns: u64) -> bool {
        if self.seen.len() <= place {
            self.seen.resize(place.saturating_add(1), Seen::default());
        }
        let Some(seen) = self.seen.get_mut(place) else {
            return false;
        };
        if seen.since_ns == 0 || seen.mark != mark {
            *seen = Seen {
                mark,
                since_ns: now_ns,
            };
        }
        now_ns.saturating_sub(seen.since_ns) >= idle_ns
    }

    fn forget(&mut self, place: usize) {
        if let Some(seen) = self.seen.get_mut(place) {
            *seen = Seen::default();
        }
    }
}

impl ResourceDirectory {
    /// Goes on with giving back what has not been used for the idle time; to be called each second.
    pub fn give_back_idle(&self, seats: &Seats, now_ns: u64, idle: Duration) {
        let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        let mut writer = self.writer.lock();
        writer.end_rests(seats, now_ns);
        let slots = writer.names.len();
        let short = Short {
            slots: !writer.has_room(SHORT_SHARE),
            room: writer.room.is_short() || writer.rules.is_short(),
        };
        let mut left = LOOKS;
        for _look in 0..slots.min(LOOKS) {
            let place = writer.idle.next % slots.max(1);
            writer.idle.next = place.saturating_add(1);
            let Some((name, slot)) = writer.names.get(place).cloned() else {
                break;
            };
            let Some(candidate) = self.candidate(&writer, &name, slot, short) else {
                writer.idle.forget(place);
                continue;
            };
            left = left.saturating_sub(candidate.costs());
            if left == 0 {
                break;
            }
            let mark = candidate.mark(&writer, seats);
            if writer
                .idle
                .is_idle(place, mark, now_ns, idle_ns.max(candidate.remembered_ns()))
                && seats.node_counts(slot).inflight == 0
                && candidate.is_calm(&writer, now_ns)
            {
                self.take_back(&mut writer, place, now_ns);
            }
        }
        self.close_gaps(&mut writer, now_ns);
    }

    /// A slot that may go, if it is idle; `None` for one that stays in any case.
    fn candidate(
        &self,
        writer: &Writer,
        name: &str,
        slot: Slot,
        short: Short,
    ) -> Option<Candidate> {
        if is_part(name) {
            return Some(Candidate { slot, rules: None });
        }
        if !short.slots && !short.room {
            return None;
        }
        let is_ours = [Slot::OVERFLOW, Slot::INBOUND].contains(&slot);
        if is_ours || name.is_empty() || self.rule_index().names(name) {
            return None;
        }
        let rules = lines(&writer.board(), slot)?;
        let may_go = short.slots || (short.room && !rules.is_empty());
        may_go.then_some(Candidate {
            slot,
            rules: Some(rules),
        })
    }

    /// Takes the slot of a name back.
    pub(super) fn take_back(&self, writer: &mut Writer, place: usize, now_ns: u64) {
        let Some((name, slot)) = writer.names.get(place).cloned() else {
            return;
        };
        let rules = lines(&writer.board(), slot).unwrap_or_default();
        // Nobody finds it any more; then nobody counts on it any more.
        self.view.write().slots.remove(&name);
        let closed = writer.rules.close(slot);
        if let Some(named) = writer.names.get_mut(place) {
            *named = (Arc::from(""), closed);
        }
        let numbers = rules
            .iter()
            .filter_map(|rule| usize::try_from(rule.number).ok());
        let held = writer.room.leave(&name, numbers);
        writer.idle.gaps |= !held.is_empty();
        writer.idle.forget(place);
        writer.namers.forget(slot);
        writer.idle.resting.push_back(Resting {
            slot: closed,
            held,
            since_ns: now_ns,
        });
    }

    /// Publishes the rules once more where their table is nearly full and has places of resources that went.
    fn close_gaps(&self, writer: &mut Writer, now_ns: u64) {
        if !writer.idle.gaps || !writer.rules.is_short() || writer.check_gap(now_ns).is_err() {
            return;
        }
        match self.publish_compiled(writer, &self.rule_index(), now_ns) {
            Ok(_told_before) => writer.idle.gaps = false,
            Err(fault) => {
                tracing::debug!(event = "rule_table_kept", %fault, "the rule table stays as it is");
            }
        }
    }
}

/// What there is less than a quarter of.
#[derive(Debug, Clone, Copy)]
struct Short {
    slots: bool,
    /// Room for rules, their state or their values.
    room: bool,
}

/// A slot that goes if it is idle.
struct Candidate {
    slot: Slot,
    /// The rules of a resource; a node for a part of one has none.
    rules: Option<Vec<BoardRule>>,
}

impl Candidate {
    fn rules(&self) -> &[BoardRule] {
        self.rules.as_deref().unwrap_or(&[])
    }

    /// What the look at it costs, in looks at a line.
    fn costs(&self) -> usize {
        let sizes = self.rules().iter().map(memory::size);
        let words = sizes.fold(0, usize::saturating_add);
        match self.rules {
            Some(_) => RESOURCE_COSTS.saturating_add(words / LINE),
            None => 1,
        }
    }

    /// What changes with every request there: on a node for a part with each that is admitted.
    fn mark(&self, writer: &Writer, seats: &Seats) -> [u64; 3] {
        if self.rules.is_none() {
            let node = writer.ledger.node(self.slot.index);
            return node.map_or([0; 3], |node| node.pass_words());
        }
        let NodeCounts {
            passed,
            success,
            error,
            refused,
            ..
        } = seats.node_counts(self.slot);
        let ended = memory::mixed(success, error);
        let rules = self.rules().iter();
        let remembered = rules.map(|rule| memory::digest(rule, &writer.ledger));
        [
            passed,
            refused.into_iter().fold(ended, memory::mixed),
            remembered.fold(0, memory::mixed),
        ]
    }

    fn remembered_ns(&self) -> u64 {
        let each = self.rules().iter().map(memory::remembered_ns);
        each.max().unwrap_or(0)
    }

    fn is_calm(&self, writer: &Writer, now_ns: u64) -> bool {
        let mut rules = self.rules().iter();
        rules.all(|rule| memory::is_calm(rule, &writer.ledger, now_ns))
    }
}

impl Writer {
    /// Slots that have rested may be given, clean, and the room of their rules with them.
    fn end_rests(&mut self, seats: &Seats, now_ns: u64) {
        let over = |resting: &mut Resting| now_ns.saturating_sub(resting.since_ns) >= REST_NS;
        while let Some(rested) = self.idle.resting.pop_front_if(over) {
            seats.clear_node(rested.slot);
            self.room.give_back(&rested.held);
            self.idle.free.push(rested.slot);
        }
    }
}

#[cfg(test)]
mod rule_tests;

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Outcome;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::gate::{GateVerdict, Pass, Request};

    use super::*;
    use crate::tenant::rule_index::Part;
    use crate::tenant::rule_index::tests::rule_index;
    use crate::tenant::tests::tenant;
    use crate::tenant::{Tenant, callers::Caller, decide::Waits, question::Question};

    pub(super) const SECOND: u64 = 1_000_000_000;
    pub(super) const IDLE: Duration = Duration::from_mins(1);

    /// Sixteen slots; each origin of `order` has a limit of its own.
    fn host() -> Tenant {
        let tenant = tenant(Geometry::new(16, 2, 2, 2).unwrap());
        let rules = "[[flow]]\nresource = \"order\"\nlimit_origin = \"other\"\ncount = 5";
        tenant.directory().publish(rule_index(rules), 0).unwrap();
        tenant
    }

    /// One round each second, from one second to another.
    fn rounds(tenant: &Tenant, seconds: std::ops::Range<u64>) {
        for second in seconds {
            let (directory, now_ns) = (tenant.directory(), (1_000 + second) * SECOND);
            directory.give_back_idle(tenant.seats(), now_ns, IDLE);
        }
    }

    fn part(tenant: &Tenant, origin: &str) -> Option<Slot> {
        tenant
            .directory()
            .resolve_part("order", Part::Origin, origin, 0)
    }

    /// The parts of so many origins that nobody had before; those that got a node.
    fn parts(tenant: &Tenant, name: &str) -> Vec<Slot> {
        let names = (0..10).map(|number| format!("{name}-{number}"));
        names.filter_map(|origin| part(tenant, &origin)).collect()
    }

    async fn enter(tenant: &Tenant, resource: &str, origin: &str) -> Pass {
        let question = Question {
            resource,
            origin,
            context: "",
            request: Request::default(),
        };
        match tenant
            .decide(&Caller::HOST.into(), &question, Waits::HELD)
            .await
        {
            GateVerdict::Admitted(pass) => pass,
            refused @ (GateVerdict::Refused(_) | GateVerdict::Stale) => panic!("{refused:?}"),
        }
    }

    #[test]
    fn idle_origins_make_room_for_new_ones_after_a_rest() {
        let tenant = host();
        let first = parts(&tenant, "first");
        assert_eq!(first.len(), 5, "half of the slots, but for the resources");
        assert_eq!(parts(&tenant, "second"), []);
        rounds(&tenant, 0..61);
        assert_eq!(
            part(&tenant, "first-0"),
            None,
            "taken back, and no room yet"
        );
        rounds(&tenant, 61..71);
        let second = parts(&tenant, "second");
        let index = |slots: &[Slot]| {
            let mut all: Vec<u32> = slots.iter().map(|slot| slot.index).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(index(&second), index(&first));
        assert!(second.iter().all(|slot| slot.generation == 2));
    }

    #[tokio::test]
    async fn an_origin_with_requests_keeps_its_node_and_so_does_one_that_holds_a_permit() {
        let tenant = host();
        let [busy, quiet] = ["busy", "quiet"].map(|origin| part(&tenant, origin).unwrap());
        let held = enter(&tenant, "order", "quiet").await;
        rounds(&tenant, 0..40);
        tenant.exit(enter(&tenant, "order", "busy").await, Outcome::Ok);
        rounds(&tenant, 40..80);
        assert_eq!(part(&tenant, "busy"), Some(busy));
        assert_eq!(part(&tenant, "quiet"), Some(quiet));
        tenant.exit(held, Outcome::Ok);
        rounds(&tenant, 80..200);
        for (origin, before) in [("busy", busy), ("quiet", quiet)] {
            assert_ne!(part(&tenant, origin), Some(before), "{origin}");
        }
        // What it counted went with it.
        let again = part(&tenant, "busy").unwrap();
        assert_eq!(tenant.seats().node_counts(again), NodeCounts::default());
    }

    #[tokio::test]
    async fn resources_go_only_where_slots_are_short_and_no_rule_is_in_force() {
        let tenant = host();
        let names = |tenant: &Tenant| {
            let list = tenant.directory().list();
            list.into_iter()
                .map(|(name, _slot)| name.to_string())
                .collect::<Vec<_>>()
        };
        for name in ["a", "b"] {
            tenant.directory().resolve(name);
        }
        rounds(&tenant, 0..100);
        assert_eq!(names(&tenant), ["__other__", "order", "a", "b"]);
        for number in 0..20 {
            tenant.directory().resolve(&format!("name-{number}"));
        }
        assert!(tenant.directory().resolve("late").overflow);
        let held = enter(&tenant, "a", "").await;
        rounds(&tenant, 100..200);
        assert!(!tenant.directory().resolve("late").overflow);
        let left = names(&tenant);
        for kept in ["__other__", "order", "a", "late"] {
            assert!(left.iter().any(|name| name == kept), "{kept}: {left:?}");
        }
        tenant.exit(held, Outcome::Ok);
        // A rule set that is published now has records for all of them.
        let rules = "[[flow]]\nresource = \"late\"\ncount = 0";
        tenant
            .directory()
            .publish(rule_index(rules), 10 * SECOND)
            .unwrap();
        let slot = tenant.directory().resolve("late").slot;
        let verdict = tenant
            .enter(&Caller::HOST.into(), slot, Request::default(), Waits::HELD)
            .await;
        assert!(matches!(verdict, GateVerdict::Refused(_)), "{verdict:?}");
    }
}
