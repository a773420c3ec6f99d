//! Slots that nobody uses any more are given back, so that names made up by callers do not fill the pages
//! for ever.
//!
//! Nodes for origins and contexts go after the idle time, always: they are made again in no time. A resource that
//! rules do not name goes when slots become short, unless rules of the table are in force on it, whose state
//! it would lose. A slot that is taken back rests, as a seat does, and is then given to another name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate_abi::board::Needs;
use tidegate_segment::board::Slot;
use tidegate_segment::ledger::NodeCounts;

use super::super::seats::Seats;
use super::{Directory, SEPARATORS, Writer};

/// How long a slot rests: a thread that was held up inside a decision must have gone on and found it taken back.
const REST_NS: u64 = 10_000_000_000;

/// Slots are short when fewer than one in this many are left.
const SHORT_SHARE: u32 = 4;

/// Most slots that are looked at in one round.
const LOOKS: usize = 16_384;
/// The look at a resource goes through the rows of all seats; that at a node for a part reads one line.
const RESOURCE_COSTS: usize = 128;

/// Who is on the way back.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// In the order of the slots.
    seen: Vec<Seen>,
    /// Where the next round goes on.
    next: usize,
    /// Slots that were taken back, the oldest first, and when.
    resting: VecDeque<(Slot, u64)>,
    /// Slots that may be given.
    free: Vec<Slot>,
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

impl Directory {
    /// Goes on with giving back what has not been used for the idle time; to be called each second.
    pub fn give_back_idle(&self, seats: &Seats, now_ns: u64, idle: Duration) {
        let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        let mut writer = self.writer.lock();
        writer.end_rests(seats, now_ns);
        let slots = writer.names.len();
        let short = !writer.has_room(SHORT_SHARE);
        let mut left = LOOKS;
        for _look in 0..slots.min(LOOKS) {
            let place = writer.idle.next % slots.max(1);
            writer.idle.next = place.saturating_add(1);
            let Some((name, slot)) = writer.names.get(place).cloned() else {
                break;
            };
            let is_part = name.contains(SEPARATORS);
            let may_go = is_part || (short && self.may_go(&writer, &name, slot));
            if !may_go {
                writer.idle.forget(place);
                continue;
            }
            left = left.saturating_sub(if is_part { 1 } else { RESOURCE_COSTS });
            if left == 0 {
                break;
            }
            let mark = mark(&writer, seats, is_part, slot);
            if writer.idle.is_idle(place, mark, now_ns, idle_ns)
                && seats.node_counts(slot).inflight == 0
            {
                self.take_back(&mut writer, place, (&name, slot), now_ns);
            }
        }
    }

    /// Whether a resource may go: no rule names it, and none of the table is in force on it.
    fn may_go(&self, writer: &Writer, name: &str, slot: Slot) -> bool {
        let is_ours = [Slot::OVERFLOW, Slot::INBOUND].contains(&slot);
        let record = writer.board().record(slot.index);
        let has_state = record.is_none_or(|record| record.needs.any(Needs::RULES | Needs::SHORT));
        !is_ours && !name.is_empty() && !has_state && !self.limits().names(name)
    }

    fn take_back(
        &self,
        writer: &mut Writer,
        place: usize,
        (name, slot): (&Arc<str>, Slot),
        now_ns: u64,
    ) {
        // Nobody finds it any more; then nobody counts on it any more.
        self.view.write().slots.remove(name);
        let closed = writer.rules.close(slot);
        if let Some(named) = writer.names.get_mut(place) {
            *named = (Arc::from(""), closed);
        }
        writer.idle.forget(place);
        writer.idle.resting.push_back((closed, now_ns));
    }
}

impl Writer {
    /// Slots that have rested may be given, clean.
    fn end_rests(&mut self, seats: &Seats, now_ns: u64) {
        let over = |since_ns: u64| now_ns.saturating_sub(since_ns) >= REST_NS;
        while let Some((slot, _since)) = self
            .idle
            .resting
            .pop_front_if(|(_slot, since_ns)| over(*since_ns))
        {
            seats.clear_node(slot);
            self.idle.free.push(slot);
        }
    }
}

/// What changes on a slot with every request that is admitted there, and on a resource's with every refused one.
fn mark(writer: &Writer, seats: &Seats, is_part: bool, slot: Slot) -> [u64; 3] {
    if is_part {
        let node = writer.ledger.node(slot.index);
        return node.map_or([0; 3], |node| node.pass_words());
    }
    let NodeCounts {
        passed, refused, ..
    } = seats.node_counts(slot);
    let refused = refused.into_iter().fold(0, u64::wrapping_add);
    [passed, refused, 0]
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Outcome;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::gate::{Pass, Request, Verdict};

    use super::*;
    use crate::tenant::limit::Part;
    use crate::tenant::limit::tests::limits;
    use crate::tenant::tests::tenant;
    use crate::tenant::{HOST, Tenant, decide::Waits, question::Question};

    const SECOND: u64 = 1_000_000_000;
    const IDLE: Duration = Duration::from_mins(1);

    /// Sixteen slots; each origin of `order` has a limit of its own.
    fn host() -> Tenant {
        let tenant = tenant(Geometry::new(16, 2, 2, 2).unwrap());
        let rules = "[[flow]]\nresource = \"order\"\nlimit_origin = \"other\"\ncount = 5";
        tenant.directory().publish(limits(rules), 0).unwrap();
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
            .resolve_part("order", Part::Origin, origin)
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
        match tenant.decide(HOST, &question, Waits::HELD).await {
            Verdict::Admitted(pass) => pass,
            refused @ (Verdict::Refused(_) | Verdict::Stale) => panic!("{refused:?}"),
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
            .publish(limits(rules), 10 * SECOND)
            .unwrap();
        let slot = tenant.directory().resolve("late").slot;
        let verdict = tenant
            .enter(HOST, slot, Request::default(), Waits::HELD)
            .await;
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }
}
