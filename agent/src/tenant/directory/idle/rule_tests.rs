//! Resources of patterns and under breakers for all come and go with what their rules remember.

use tidegate_abi::decision::{Outcome, RefusalKind};
use tidegate_abi::geometry::Geometry;
use tidegate_segment::gate::{Arg, GateVerdict, Request};

use super::tests::{IDLE, SECOND};
use super::*;
use crate::tenant::Tenant;
use crate::tenant::callers::Caller;
use crate::tenant::decide::Waits;
use crate::tenant::rule_index::tests::rule_index;
use crate::tenant::tests::tenant;

const PATTERN: &str = r#"
    [[flow]]
    id = "each item"
    resource = "item/.*"
    regex = true
    count = 0
    window = "10s"
"#;
const BREAKER: &str = r#"
    [[degrade]]
    id = "any"
    resource = "*"
    grade = "error_count"
    threshold = 0
    min_requests = 1
    stat_interval = "2m"
    recovery_timeout = "1h"
"#;
const VALUES: &str = r#"
    [[param]]
    id = "each user"
    resource = "item/.*"
    regex = true
    index = 0
    count = 1
    window = "1h"
"#;

fn host(resources: u32, rules: &str) -> Tenant {
    let tenant = tenant(Geometry::new(resources, 2, 2, 2).unwrap());
    let published = tenant.directory().publish(rule_index(rules), 0).unwrap();
    assert_eq!(published.unplaced, []);
    tenant
}

/// One round each second, from one second to another.
fn rounds(tenant: &Tenant, seconds: std::ops::Range<u64>) {
    for second in seconds {
        let now_ns = (1_000 + second) * SECOND;
        tenant
            .directory()
            .give_back_idle(tenant.seats(), now_ns, IDLE);
    }
}

/// Asks for a name new and old; what becomes of it.
async fn ask(tenant: &Tenant, name: &str, outcome: Outcome) -> Result<(), RefusalKind> {
    let slot = tenant.directory().resolve(name).slot;
    let request = Request {
        args: &[Arg::One(7)],
        ..Request::default()
    };
    match tenant
        .enter(&Caller::HOST.into(), slot, request, Waits::HELD)
        .await
    {
        GateVerdict::Admitted(pass) => {
            tenant.exit(pass, outcome);
            Ok(())
        }
        GateVerdict::Refused(refusal) => Err(refusal.kind),
        GateVerdict::Stale => panic!("{name} is stale"),
    }
}

fn has(tenant: &Tenant, name: &str) -> bool {
    tenant.directory().find(name).is_some()
}

/// Asks for names until there is no slot left for one more.
fn fill(tenant: &Tenant, prefix: &str) {
    for number in 0..64 {
        let name = format!("{prefix}{number}");
        if tenant.directory().resolve(&name).overflow {
            return;
        }
    }
    panic!("there is always a slot for {prefix}");
}

#[tokio::test]
async fn a_resource_under_a_breaker_for_all_goes_when_it_is_closed_and_nothing_is_remembered() {
    let tenant = host(16, BREAKER);
    ask(&tenant, "fails", Outcome::Error).await.unwrap();
    ask(&tenant, "works", Outcome::Ok).await.unwrap();
    fill(&tenant, "name-");
    // The idle time is over, the breakers' interval is not.
    rounds(&tenant, 0..100);
    assert!(has(&tenant, "fails") && has(&tenant, "works"));
    rounds(&tenant, 100..125);
    assert!(has(&tenant, "fails"), "its breaker is open");
    assert!(!has(&tenant, "works"));
    rounds(&tenant, 125..140);
    let late = tenant.directory().resolve("late");
    assert!(!late.overflow);
    // The breaker of the slot's last holder is not its own.
    ask(&tenant, "late", Outcome::Ok).await.unwrap();
    let refused = ask(&tenant, "fails", Outcome::Ok).await;
    assert_eq!(refused, Err(RefusalKind::Degrade));
}

#[tokio::test]
async fn a_resource_of_a_pattern_goes_when_its_values_are_as_new() {
    let tenant = host(16, VALUES);
    ask(&tenant, "item/1", Outcome::Ok).await.unwrap();
    fill(&tenant, "item/more-");
    ask(&tenant, "item/more-0", Outcome::Ok).await.unwrap();
    rounds(&tenant, 0..3_600);
    assert!(has(&tenant, "item/1") && has(&tenant, "item/more-0"));
    for name in ["item/1", "item/more-0"] {
        let again = ask(&tenant, name, Outcome::Ok).await;
        assert_eq!(again, Err(RefusalKind::Param), "its value is remembered");
    }
    rounds(&tenant, 3_600..7_250);
    let left = ["item/1", "item/more-0"].map(|name| has(&tenant, name));
    assert_eq!(left, [false; 2]);
}

#[tokio::test]
async fn a_name_without_a_slot_is_held_to_the_rules_of_its_pattern() {
    let tenant = host(16, PATTERN);
    fill(&tenant, "name-");
    for (name, expected) in [("item/1", Err(RefusalKind::Flow)), ("other", Ok(()))] {
        let found = tenant.directory().resolve(name);
        assert!(found.overflow, "{name}");
        assert_eq!(ask(&tenant, name, Outcome::Ok).await, expected, "{name}");
        let known = tenant.directory().known(name);
        assert_eq!(known, Some(found), "{name}");
    }
    // A set without the pattern: who has the slot that it shared asks anew.
    let shared = tenant.directory().resolve("item/1").slot;
    let published = tenant.directory().publish(rule_index(""), 10_000_000);
    assert_eq!(published.unwrap().unplaced, []);
    let host = Caller::HOST.into();
    let verdict = tenant.enter(&host, shared, Request::default(), Waits::HELD);
    assert_eq!(verdict.await, GateVerdict::Stale);
    assert_eq!(tenant.directory().resolve("item/1").slot, Slot::OVERFLOW);
}

#[tokio::test]
async fn names_that_come_and_go_for_ever_are_held_to_their_rules_and_use_up_nothing() {
    let rules = [PATTERN, BREAKER, VALUES].concat();
    let tenant = host(16, &rules);
    let mut own_slots = Vec::new();
    for span in 0..200 {
        own_slots.push(0);
        for number in 0..10 {
            let name = format!("item/{span}-{number}");
            if !tenant.directory().resolve(&name).overflow {
                own_slots[usize::try_from(span).unwrap()] += 1;
            }
            // The first value has a token, so it is the flow rule that refuses.
            let refused = ask(&tenant, &name, Outcome::Ok).await;
            let Err(RefusalKind::Flow | RefusalKind::Param) = refused else {
                panic!("{name}: {refused:?}");
            };
        }
        // More than an hour later, and a rest.
        let now_ns = |minutes: u64| (1_000 + span * 10_000 + minutes * 60) * SECOND;
        for minutes in [0, 1, 62, 64, 65] {
            let directory = tenant.directory();
            directory.give_back_idle(tenant.seats(), now_ns(minutes), IDLE);
        }
    }
    // Three lines each: without what was given back the table had ended after ten of them.
    assert!(
        own_slots.iter().skip(1).all(|slots| *slots > 0),
        "{own_slots:?}"
    );
}
