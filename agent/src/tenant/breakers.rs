//! The breakers of a tenant: how each is, and what has changed since the last look.
//!
//! Services change breakers in the ledger, each for all; the agent looks once a second.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_limits::breaker::tally::BreakerTally;
use tidegate_limits::breaker::{Breaker, BreakerState};
use tidegate_segment::board::{Board, BoardRule as Line, RuleKind, Slot};
use tidegate_segment::ledger::BreakerChanges;

use super::Tenant;
use crate::rule::Body;

/// A breaker of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakerNow {
    /// The resource.
    pub resource: Arc<str>,
    /// Id of the rule.
    pub rule: String,
    /// What it does with calls.
    pub state: BreakerState,
    /// Until the next probe, or until the present one must have ended, ns.
    pub left_ns: u64,
    /// Completed calls of the present interval, all and bad.
    pub calls: (u32, u32),
    /// Share or number that opened it last; 0 before the first time.
    pub opened_by: f64,
    /// How often it came into each state.
    pub changes: BreakerChanges,
}

/// A breaker came into another state.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakerEvent {
    /// How it was.
    pub from: BreakerState,
    /// How it is.
    pub now: BreakerNow,
}

/// Remembers how the breakers were.
#[derive(Debug, Default)]
pub struct BreakerWatch {
    before: HashMap<(Arc<str>, String), (BreakerState, BreakerChanges)>,
}

impl BreakerWatch {
    /// What has changed since the last look. A breaker that opened and closed again between two looks
    /// is told once, as it is now.
    pub fn look(&mut self, tenant: &Tenant, now_ns: u64) -> Vec<BreakerEvent> {
        let mut before = std::mem::take(&mut self.before);
        let mut news = Vec::new();
        for now in tenant.breakers(now_ns) {
            let key = (Arc::clone(&now.resource), now.rule.clone());
            let nothing = (BreakerState::Closed, BreakerChanges::default());
            let (from, changes) = before.remove(&key).unwrap_or(nothing);
            self.before.insert(key, (now.state, now.changes));
            if from != now.state || changes != now.changes {
                news.push(BreakerEvent { from, now });
            }
        }
        news
    }
}

impl Tenant {
    /// Every breaker, at `now_ns`.
    pub fn breakers(&self, now_ns: u64) -> Vec<BreakerNow> {
        let limits = self.directory().rule_index();
        let has_any = limits.rules().rules().iter();
        if !has_any
            .clone()
            .any(|rule| matches!(rule.body, Body::Degrade(_)))
        {
            return Vec::new();
        }
        let names = self.directory().list().into_iter();
        names
            .flat_map(|(name, slot)| self.breakers_of(&name, slot, now_ns))
            .collect()
    }

    /// The breakers of a resource.
    pub fn breakers_of(&self, name: &Arc<str>, slot: Slot, now_ns: u64) -> Vec<BreakerNow> {
        let lines = self.lines(slot).into_iter();
        lines
            .filter_map(|line| self.breaker(name, &line, now_ns))
            .collect()
    }

    fn breaker(&self, name: &Arc<str>, line: &Line, now_ns: u64) -> Option<BreakerNow> {
        let RuleKind::Degrade {
            breaker,
            interval_ns,
        } = line.kind
        else {
            return None;
        };
        let state = self.ledger().state(line.state)?;
        let word = state.word().load(tidegate_segment::sync::Ordering::Relaxed);
        let tally = state
            .second()
            .load(tidegate_segment::sync::Ordering::Relaxed);
        let tally = BreakerTally::at(tally, now_ns, interval_ns);
        Some(BreakerNow {
            resource: Arc::clone(name),
            rule: self.directory().rule_index().id(line.number)?.to_owned(),
            state: Breaker::state(&breaker, word, now_ns),
            left_ns: breaker.left_ns(word, now_ns),
            // Any service can write the words.
            calls: (tally.all(), tally.bad().min(tally.all())),
            opened_by: breaker.trip.possible(state.opened_by()),
            changes: state.changes(),
        })
    }

    /// The rules of a resource in the table of the board.
    pub fn lines(&self, slot: Slot) -> Vec<Line> {
        lines(self.board(), slot).unwrap_or_default()
    }
}

/// The rules of a resource in the table of a board; `None` if the slot is another's or the set changes.
pub fn lines(board: &Board, slot: Slot) -> Option<Vec<Line>> {
    let view = board.view();
    let record = view.record(slot.index);
    let record = record.filter(|record| record.generation == slot.generation)?;
    let places = 0..record.rules;
    let lines = places.map(|place| view.rule(record.rules_first.saturating_add(place)));
    lines.collect()
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

    #[tokio::test]
    async fn a_breaker_that_opens_and_probes_is_told_with_what_opened_it() {
        let tenant = tenant(Geometry::new(16, 2, 2, 2).unwrap());
        let rules = r#"
            [[degrade]]
            id = "payment-breaker"
            resource = "payment"
            grade = "error_ratio"
            threshold = 0.5
            min_requests = 2
            stat_interval = "1h"
            recovery_timeout = "1ms"
            probe_lease = "1h"
        "#;
        let published = tenant.directory().publish(rule_index(rules), 0).unwrap();
        assert_eq!(published.unplaced, []);
        let slot = tenant.directory().resolve("payment").slot;
        let host = Caller::HOST.into();
        let ask = || tenant.enter(&host, slot, Request::default(), Waits::HELD);
        let mut watch = BreakerWatch::default();
        assert_eq!(watch.look(&tenant, monotonic_ns()), []);
        for _call in 0..2 {
            let GateVerdict::Admitted(pass) = ask().await else {
                panic!("admitted");
            };
            tenant.exit(pass, Outcome::Error);
        }
        let [opened] = watch.look(&tenant, monotonic_ns()).try_into().unwrap();
        assert_eq!(
            (opened.from, opened.now.state),
            (BreakerState::Closed, BreakerState::Open)
        );
        assert_eq!(&*opened.now.resource, "payment");
        assert_eq!(opened.now.rule, "payment-breaker");
        assert_eq!((opened.now.calls, opened.now.opened_by), ((2, 2), 1.0));
        assert_eq!(watch.look(&tenant, monotonic_ns()), []);
        let probe = loop {
            match ask().await {
                GateVerdict::Admitted(pass) => break pass,
                GateVerdict::Refused(refusal) => {
                    assert_eq!((refusal.value, refusal.limit), (1000, 500), "of 1000");
                }
                GateVerdict::Stale => panic!("stale"),
            }
        };
        let [probing] = watch.look(&tenant, monotonic_ns()).try_into().unwrap();
        assert_eq!(
            (probing.from, probing.now.state),
            (BreakerState::Open, BreakerState::HalfOpen)
        );
        tenant.exit(probe, Outcome::Ok);
        let [closed] = watch.look(&tenant, monotonic_ns()).try_into().unwrap();
        assert_eq!(
            (closed.from, closed.now.state),
            (BreakerState::HalfOpen, BreakerState::Closed)
        );
        let changes = BreakerChanges {
            open: 1,
            closed: 1,
            half_open: 1,
        };
        assert_eq!(closed.now.changes, changes);
    }

    #[tokio::test]
    async fn field_b13_a_breaker_that_was_written_all_over_shows_what_can_be() {
        let tenant = tenant(Geometry::new(16, 2, 2, 2).unwrap());
        let common = "threshold = 1\nrecovery_timeout = \"1s\"";
        let rules = [
            "resource = \"a\"\ngrade = \"error_count\"",
            "resource = \"b\"\ngrade = \"error_ratio\"",
            "resource = \"c\"\ngrade = \"slow_ratio\"\nmax_rt = \"1ms\"",
        ]
        .map(|rule| format!("[[degrade]]\n{rule}\n{common}\n"));
        let published = tenant
            .directory()
            .publish(rule_index(&rules.concat()), 0)
            .unwrap();
        assert_eq!(published.unplaced, []);
        for byte in [0x7f, 0x00, 0x3f, 0x80, 0xff] {
            for name in ["a", "b", "c"] {
                let slot = tenant.directory().resolve(name).slot;
                for line in tenant.lines(slot) {
                    let state = tenant.ledger().state(line.state).unwrap();
                    for word in (0..).map_while(|index| state.item(index)) {
                        let garbage = u64::from_ne_bytes([byte; 8]);
                        word.store(garbage, tidegate_segment::sync::Ordering::Relaxed);
                    }
                }
            }
            for now in tenant.breakers(monotonic_ns()) {
                let most = match &*now.resource {
                    "a" => 4_194_303.0,
                    _ => 1.0,
                };
                assert!((0.0..=most).contains(&now.opened_by), "{now:?}");
                assert!(now.calls.1 <= now.calls.0, "{now:?}");
            }
        }
    }
}
