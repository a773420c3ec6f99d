use tidegate_abi::board::Needs;
use tidegate_abi::geometry::Geometry;

use super::super::rule_index::tests::rule_index;
use super::*;
use crate::tenant::tests::tenant;

fn qps(resource: &str, most: u32) -> RuleIndex {
    rule_index(&format!(
        "[[flow]]\nid = \"first\"\nresource = \"{resource}\"\ncount = {most}"
    ))
}

fn tenant_with(resources: u32) -> super::super::Tenant {
    tenant(Geometry::new(resources, 4, 2, 2).unwrap())
}

#[test]
fn a_name_keeps_its_slot_and_names_over_the_bound_share_one() {
    let tenant = tenant_with(8);
    let directory = tenant.directory();
    let first = directory.resolve("a");
    assert!(!first.overflow);
    assert_eq!(directory.resolve("a"), first);
    for name in ["b", "c", "d", "e"] {
        assert!(!directory.resolve(name).overflow, "{name}");
    }
    assert!(directory.resolve("g").overflow);
    assert_eq!(directory.overflowed(), 1);
    // The place kept for rules.
    let published = directory.publish(qps("from-a-rule", 5), 0).unwrap();
    assert_eq!(published, PublishResult::default());
    assert!(!directory.resolve("from-a-rule").overflow);
    let published = directory
        .publish(qps("one-too-many", 5), 10_000_000)
        .unwrap();
    let [(name, fault)] = published.unplaced.as_slice() else {
        panic!("{published:?}");
    };
    assert_eq!(
        (name.as_str(), *fault),
        ("one-too-many", RuleFault::Full(8))
    );
}

/// A hot-parameter rule on each of so many resources.
fn params(resources: usize) -> RuleIndex {
    let rule = |number| format!("[[param]]\nresource = \"r{number}\"\nindex = 0\ncount = 1\n");
    rule_index(&(0..resources).map(rule).collect::<String>())
}

#[test]
fn hot_parameter_rules_share_the_room_for_values_and_leave_some_for_later_ones() {
    let tenant = tenant_with(16);
    let directory = tenant.directory();
    let mut now_ns = 0;
    let mut publish = |rules| {
        now_ns += 10_000_000;
        directory.publish(params(rules), now_ns).unwrap().unplaced
    };
    // 64 sets: a third of them for one rule, then a fifth, and a third of what is left.
    for rules in [1, 2, 3] {
        assert_eq!(publish(rules), [], "{rules}");
    }
    let tenant = tenant_with(16);
    let published = tenant.directory().publish(params(7), 0).unwrap();
    assert_eq!(published.unplaced, [], "seven at once");
    let tenant = tenant_with(16);
    let published = tenant.directory().publish(params(12), 0).unwrap();
    let unplaced = published.unplaced.iter().map(|(_name, fault)| *fault);
    assert_eq!(unplaced.collect::<Vec<_>>(), [RuleFault::ValuesFull(64); 4]);
    assert_eq!(
        RuleFault::ValuesFull(64).to_string(),
        "the values of hot-parameter rules need more than 64 sets; raise pages.max_resources and restart"
    );
}

#[test]
fn hot_parameter_rules_that_all_change_are_in_force_at_once() {
    for rules in 1..=4 {
        let tenant = tenant_with(16);
        for reload in 1..=6_u64 {
            let rule = |number| {
                format!(
                    "[[param]]\nresource = \"r{number}\"\nindex = 0\ncount = 1\nwindow = \"{reload}s\"\n"
                )
            };
            let set = rule_index(&(0..rules).map(rule).collect::<String>());
            let published = tenant.directory().publish(set, reload * 10_000_000);
            // Those before still have their room, since decisions may be writing there.
            assert_eq!(
                published.unwrap().unplaced,
                [],
                "{rules} rules, set {reload}"
            );
        }
    }
}

#[test]
fn a_rule_set_is_in_force_for_names_before_and_after_it() {
    let tenant = tenant_with(8);
    let directory = tenant.directory();
    let before = directory.resolve("a").slot;
    directory.publish(qps("a", 7), 0).unwrap();
    let record = tenant.board().record(before.index).unwrap();
    assert_eq!((record.needs, record.qps_limit), (Needs(Needs::QPS), 7));
    assert_eq!(directory.rule_index().id(0), Some("first"));
    directory.publish(RuleIndex::default(), 10_000_000).unwrap();
    let record = tenant.board().record(before.index).unwrap();
    assert_eq!(record.needs, Needs(0));
}

#[test]
fn two_publishes_are_kept_apart() {
    let tenant = tenant_with(8);
    let directory = tenant.directory();
    directory.publish(qps("a", 7), 1_000).unwrap();
    let soon = directory.publish(qps("a", 8), 2_000);
    assert_eq!(soon, Err(TooSoon { wait_ns: 9_999_000 }.into()));
    let record = tenant.board().record(directory.resolve("a").slot.index);
    assert_eq!(record.unwrap().qps_limit, 7);
}

#[test]
fn field_b3_names_of_one_user_leave_slots_to_others() {
    let tenant = tenant(Geometry::new(64, 4, 2, 2).unwrap());
    let directory = tenant.directory();
    let own = |uid: u32, count: u32| {
        let names = (0..count).map(|number| format!("{uid}-{number}"));
        names
            .filter(|name| !directory.resolve_by(name, uid).overflow)
            .count()
    };
    assert_eq!(own(7, 64), 32, "half of the slots");
    assert_eq!(own(7, 32), 32, "what has a slot keeps it");
    assert!(own(8, 10) == 10 && own(0, 5) == 5);
    directory.serve_one_user();
    assert!(!directory.resolve_by("one more", 7).overflow);
}
