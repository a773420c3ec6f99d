use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Slot;

use super::*;
use crate::tenant::breakers::lines;
use crate::tenant::rule_index::tests::rule_index;
use crate::tenant::tests::tenant;

/// What one rule of a resource becomes.
fn line(rule: &str) -> Line {
    let tenant = tenant(Geometry::new(64, 2, 2, 2).unwrap());
    let published = tenant.directory().publish(rule_index(rule), 0).unwrap();
    assert_eq!(published.unplaced, [], "{rule}");
    let slot: Slot = tenant.directory().resolve("a").slot;
    let mut lines = lines(tenant.board(), slot).unwrap();
    lines
        .pop()
        .unwrap_or_else(|| panic!("a plain rule: {rule}"))
}

#[test]
fn a_rule_remembers_for_as_long_as_its_numbers_say() {
    let flow = "[[flow]]\nresource = \"a\"\n";
    let param = "[[param]]\nresource = \"a\"\nindex = 0\n";
    let degrade = "[[degrade]]\nresource = \"a\"\n";
    for (kind, rule, remembered_ms) in [
        (flow, "count = 5\nlimit_origin = \"shop\"", 2_000),
        (flow, "count = 5\nwindow = \"10s\"", 20_000),
        (flow, "count = 5\nwindow = \"10s\"\nstrict = true", 20_000),
        (
            flow,
            "count = 0.5\nbehavior = \"pace\"\nmax_queueing_time = \"3s\"",
            5_000,
        ),
        (
            flow,
            "count = 30\nbehavior = \"warm_up\"\nwarm_up_period = \"5s\"",
            10_000,
        ),
        (
            flow,
            "count = 0.03\nbehavior = \"warm_up_pace\"\nwarm_up_period = \"5s\"\nmax_queueing_time = \"1s\"",
            101_000,
        ),
        (param, "count = 5\nwindow = \"60s\"", 61_000),
        (param, "count = 5\nburst = 11\nwindow = \"60s\"", 241_000),
        (param, "count = 5\nwindow = \"60s\"\nstrict = true", 120_000),
        (param, "grade = \"concurrency\"\ncount = 5", 0),
        (
            param,
            "count = 5\nwindow = \"60s\"\nbehavior = \"pace\"\nmax_queueing_time = \"1500ms\"",
            62_000,
        ),
        (
            degrade,
            "grade = \"error_count\"\nthreshold = 5\nstat_interval = \"1h\"\nrecovery_timeout = \"1s\"",
            3_600_000,
        ),
    ] {
        let line = line(&format!("{kind}{rule}"));
        assert_eq!(remembered_ns(&line) / 1_000_000, remembered_ms, "{rule}");
    }
}

#[test]
fn the_least_item_of_a_value_says_how_long_its_bucket_takes_to_fill() {
    let rule = "[[param]]\nresource = \"a\"\nindex = 0\ncount = 5\nburst = 10\nwindow = \"1s\"\n\
                items = [{ value = \"vip\", count = 1 }]";
    assert_eq!(remembered_ns(&line(rule)) / SECOND_NS, 12);
}
