//! What each rule refused, over all resources that it stands on.
//!
//! The gate counts where it is at anyway: in the line of a rule's state, or in the node of a resource whose rules are
//! plain. A place in a node serves one rule after the other, so whoever looks adds what is new since the last look to
//! the rule that has the place now. A new set of rules is put in force between two looks. A decision costs nothing
//! for all this.

use std::collections::{HashMap, HashSet};

use tidegate_abi::board::Needs;
use tidegate_abi::decision::{Mode, RefusalKind};
use tidegate_segment::board::{ResourceRecord, Slot};

use super::Tenant;
use super::directory::{PublishFault, PublishResult};
use super::rule_index::RuleIndex;

/// A rule and what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCount {
    /// Its kind and id.
    pub key: KindAndId,
    /// Name or pattern of its resource; `None` for a rule on a scope.
    pub resource: Option<String>,
    /// Whether it refuses or only observes.
    pub mode: Mode,
    /// What it did.
    pub counts: RuleActivity,
}

/// Kind and id of a rule: no other rule of a tenant has both.
pub type KindAndId = (RefusalKind, String);

/// What a rule did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleActivity {
    /// Requests that it refused.
    pub refused: u64,
    /// Requests that it would have refused if it did not only observe.
    pub observed: u64,
}

/// Where the pages count what a rule refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    /// In a node: what the plain rule of this quantity refused.
    Node(Slot, u32),
    /// In the node of all inbound work: what system rules refused.
    Inbound(bool),
    /// In a line of state.
    Line(u32, bool),
}

/// A place where a rule counts, as it is now.
#[derive(Debug, Clone, Copy)]
struct Seen {
    spot: Spot,
    rule: u32,
    count: u64,
}

/// What the rules of a tenant did so far.
#[derive(Debug, Default)]
pub struct RuleCounts {
    seen: HashMap<Spot, u64>,
    sums: HashMap<KindAndId, RuleActivity>,
}

/// What to make of a place that the last look did not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum New {
    /// All that was counted there is the rule's.
    Counts,
    /// Its rule has just come: what was counted before is not the rule's.
    Begins,
}

impl Tenant {
    /// Puts a set of rules in force, see [`super::directory::ResourceDirectory::publish`]; what was refused until then
    /// counts for the rules before.
    ///
    /// # Errors
    /// Those of the directory; the set before stays in force then.
    pub fn publish(&self, limits: RuleIndex, now_ns: u64) -> Result<PublishResult, PublishFault> {
        let mut counts = self.rule_counts.lock();
        counts.look(self, New::Counts);
        let published = self.directory.publish(limits, now_ns)?;
        counts.look(self, New::Begins);
        counts.forget_others(&self.directory.rule_index());
        Ok(published)
    }

    /// The rules in force, in their order, with what each did.
    pub fn rule_counts(&self) -> Vec<RuleCount> {
        let mut counts = self.rule_counts.lock();
        counts.look(self, New::Counts);
        let limits = self.directory.rule_index();
        let idle: HashSet<_> = limits.not_in_force().map(std::ptr::from_ref).collect();
        let rules = limits.rules().rules().iter();
        let in_force = rules.filter(|rule| !idle.contains(&std::ptr::from_ref(*rule)));
        in_force
            .map(|rule| {
                let key = (rule.body.kind(), rule.id.clone());
                RuleCount {
                    counts: counts.sums.get(&key).copied().unwrap_or_default(),
                    key,
                    resource: rule.body.resource().map(str::to_owned),
                    mode: rule.mode,
                }
            })
            .collect()
    }
}

impl RuleCounts {
    fn look(&mut self, tenant: &Tenant, new: New) {
        let limits = tenant.directory().rule_index();
        let before = std::mem::take(&mut self.seen);
        for seen in all_seen(tenant) {
            let last = match (before.get(&seen.spot), new) {
                (Some(last), _) => *last,
                (None, New::Counts) => 0,
                (None, New::Begins) => seen.count,
            };
            let (more, now) = seen.since(last);
            self.seen.insert(seen.spot, now);
            let index = usize::try_from(seen.rule).ok();
            let rule = index.and_then(|index| limits.rules().rules().get(index));
            if let Some(rule) = rule {
                let key = (rule.body.kind(), rule.id.clone());
                let sums = self.sums.entry(key).or_default();
                let sum = if seen.spot.observes() {
                    &mut sums.observed
                } else {
                    &mut sums.refused
                };
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// Forgets rules that are gone.
    fn forget_others(&mut self, limits: &RuleIndex) {
        let rules = limits.rules().rules().iter();
        let keys: HashSet<_> = rules.map(|rule| (rule.body.kind(), &*rule.id)).collect();
        self.sums
            .retain(|(kind, id), _counts| keys.contains(&(*kind, &**id)));
    }
}

impl Spot {
    const fn observes(self) -> bool {
        match self {
            Self::Node(_, need) => need & (Needs::OBSERVED_QPS | Needs::OBSERVED_CONCURRENCY) != 0,
            Self::Inbound(observes) | Self::Line(_, observes) => observes,
        }
    }
}

impl Seen {
    /// What is new since a count of `last`, and what to remember.
    fn since(self, last: u64) -> (u64, u64) {
        if let Spot::Line(..) = self.spot {
            // One that went to another resource begins at 0.
            let more = self.count.checked_sub(last).unwrap_or(self.count);
            return (more, self.count);
        }
        if self.spot.observes() {
            // Half of a word, which runs freely.
            return (self.count.wrapping_sub(last) & HALF, self.count);
        }
        // May be a difference of two counts that were read one after the other, and be behind for a moment.
        (self.count.saturating_sub(last), self.count.max(last))
    }
}

const HALF: u64 = 0xffff_ffff;

/// Every place where a rule counts now.
fn all_seen(tenant: &Tenant) -> Vec<Seen> {
    let slots = tenant.directory().list().into_iter();
    let of_resources = slots.flat_map(|(_name, slot)| {
        let record = tenant.board().record(slot.index);
        let record = record.filter(|record| record.generation == slot.generation);
        let plain = record.map(|record| of_node(tenant, slot, &record));
        plain.into_iter().flatten().chain(of_lines(tenant, slot))
    });
    of_resources.chain(of_inbound(tenant)).collect()
}

fn of_lines(tenant: &Tenant, slot: Slot) -> impl Iterator<Item = Seen> {
    let lines = tenant.lines(slot).into_iter();
    lines
        .filter_map(|line| {
            let (refused, observed) = tenant.ledger().state(line.state)?.refused_and_observed();
            let seen = |observes, count| Seen {
                spot: Spot::Line(line.state, observes),
                rule: line.number,
                count,
            };
            Some([seen(false, refused), seen(true, observed)])
        })
        .flatten()
}

/// Plain rules: one of each quantity is in force, that with the least limit.
fn of_node(tenant: &Tenant, slot: Slot, record: &ResourceRecord) -> Vec<Seen> {
    let Some(node) = tenant.ledger().node(slot.index) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut see = |need: u32, rule: u32, count: &dyn Fn() -> u64| {
        if record.needs.any(need) {
            all.push(Seen {
                spot: Spot::Node(slot, need),
                rule,
                count: count(),
            });
        }
    };
    see(Needs::QPS, record.qps_rule, &|| {
        let counts = tenant.seats().node_counts(slot);
        let flow = counts.refused_by(RefusalKind::Flow);
        flow.saturating_sub(node.refused().0)
    });
    see(Needs::CONCURRENCY, record.concurrency_rule, &|| {
        node.refused().0
    });
    see(Needs::OBSERVED_QPS, record.observed_qps_rule, &|| {
        node.observed().0.into()
    });
    see(
        Needs::OBSERVED_CONCURRENCY,
        record.observed_concurrency_rule,
        &|| node.observed().1.into(),
    );
    all
}

/// System rules: the first of each mode stands for all of it.
fn of_inbound(tenant: &Tenant) -> Vec<Seen> {
    let system = tenant.directory().rule_index().system();
    let Some(node) = tenant.ledger().node(Slot::INBOUND.index) else {
        return Vec::new();
    };
    let seen = |observes, rule, count| Seen {
        spot: Spot::Inbound(observes),
        rule,
        count,
    };
    let enforced = system
        .enforced
        .map(|rules| seen(false, rules.rule, node.refused().0));
    let observed = system
        .observed
        .map(|rules| seen(true, rules.rule, node.observed().0.into()));
    [enforced, observed].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use tidegate_abi::decision::Outcome;
    use tidegate_abi::geometry::Geometry;
    use tidegate_segment::clock::monotonic_ns;
    use tidegate_segment::gate::{GateVerdict, Request};

    use super::*;
    use crate::tenant::callers::Caller;
    use crate::tenant::decide::Waits;
    use crate::tenant::rule_index::tests::rule_index;
    use crate::tenant::tests::tenant;

    async fn ask(tenant: &Tenant, resource: &str, times: usize) {
        let slot = tenant.directory().resolve(resource).slot;
        for _ in 0..times {
            let verdict = tenant
                .enter(&Caller::HOST.into(), slot, Request::default(), Waits::HELD)
                .await;
            if let GateVerdict::Admitted(pass) = verdict {
                tenant.exit(pass, Outcome::Ok);
            }
        }
    }

    /// Id, refused, observed.
    fn told(tenant: &Tenant) -> Vec<(String, u64, u64)> {
        let counts = tenant.rule_counts().into_iter();
        let told = counts.map(|rule| (rule.key.1, rule.counts.refused, rule.counts.observed));
        told.filter(|(_id, refused, observed)| refused + observed > 0)
            .collect()
    }

    fn told_as(expected: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        let told = expected.iter();
        told.map(|(id, refused, observed)| ((*id).to_owned(), *refused, *observed))
            .collect()
    }

    /// A set of rules in force on fresh pages.
    fn tenant_of(rules: &str) -> Tenant {
        let tenant = tenant(Geometry::new(32, 4, 2, 2).unwrap());
        let published = tenant.publish(rule_index(rules), 0).unwrap();
        assert_eq!(published.unplaced, []);
        tenant
    }

    fn reload(tenant: &Tenant, rules: &str) {
        let published = tenant.publish(rule_index(rules), monotonic_ns()).unwrap();
        assert_eq!(published.unplaced, []);
    }

    const HOUR: &str = r#"window = "1h""#;

    fn flow(id: &str, resource: &str, more: &str) -> String {
        format!("[[flow]]\nid = \"{id}\"\nresource = \"{resource}\"\n{more}\n")
    }

    #[tokio::test]
    async fn field_o9_an_observed_rule_is_told_apart_from_an_enforced_one() {
        let plain = flow("strict", "plain", "grade = \"concurrency\"\ncount = 0")
            + &flow("watch", "plain", "count = 0\nmode = \"observe\"");
        let walked = flow("loose", "walked", &format!("count = 3\n{HOUR}"))
            + &flow(
                "looks",
                "walked",
                &format!("count = 1\nmode = \"observe\"\n{HOUR}"),
            );
        let tenant = tenant_of(&(plain + &walked));
        ask(&tenant, "plain", 5).await;
        ask(&tenant, "walked", 5).await;
        let counts = told(&tenant);
        let of = |id: &str| counts.iter().find(|(own, ..)| own == id).cloned();
        assert_eq!(of("strict"), Some(("strict".to_owned(), 5, 0)));
        assert_eq!(of("loose"), Some(("loose".to_owned(), 2, 0)));
        let looks = of("looks").map(|(_id, refused, observed)| (refused, observed > 0));
        assert_eq!(looks, Some((0, true)), "{counts:?}");
    }

    #[tokio::test]
    async fn field_o9_two_rules_on_one_resource_are_told_apart() {
        let tenant = tenant_of(
            &(flow("hour", "a", &format!("count = 2\n{HOUR}"))
                + &flow("never", "a", "grade = \"concurrency\"\ncount = 9")
                + &flow("none", "b", "grade = \"concurrency\"\ncount = 0")
                + &flow("second", "b", "count = 9")),
        );
        ask(&tenant, "a", 5).await;
        ask(&tenant, "b", 4).await;
        assert_eq!(told(&tenant), told_as(&[("hour", 3, 0), ("none", 4, 0)]));
    }

    #[tokio::test]
    async fn field_o9_what_was_refused_before_a_reload_stays_with_the_rule_that_refused_it() {
        let before = flow("old", "a", "count = 0") + &flow("kept", "b", "count = 0");
        let tenant = tenant_of(&before);
        ask(&tenant, "a", 3).await;
        ask(&tenant, "b", 3).await;
        reload(
            &tenant,
            &(flow("new", "a", "count = 0") + &flow("kept", "b", "count = 0\nmode = \"observe\"")),
        );
        ask(&tenant, "a", 2).await;
        ask(&tenant, "b", 4).await;
        assert_eq!(told(&tenant), told_as(&[("new", 2, 0), ("kept", 3, 4)]));
    }

    #[tokio::test]
    async fn field_o9_a_pattern_counts_over_all_its_resources() {
        let all = "regex = true\ngrade = \"concurrency\"\ncount = 0";
        let tenant = tenant_of(&flow("all", "x.*", all));
        for resource in ["x1", "x2", "x3"] {
            ask(&tenant, resource, 2).await;
        }
        let counts = tenant.rule_counts();
        let [rule] = counts.as_slice() else {
            panic!("one rule: {counts:?}");
        };
        assert_eq!(rule.resource.as_deref(), Some("x.*"));
        assert_eq!(rule.counts.refused, 6);
    }
}
