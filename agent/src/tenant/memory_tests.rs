//! How much memory the pages of a tenant take.

use std::fmt::Write as _;
use std::sync::Arc;

use tidegate_abi::board::name_hash;
use tidegate_abi::decision::Outcome;
use tidegate_abi::geometry::Geometry;
use tidegate_segment::board::Slot;
use tidegate_segment::gate::{Arg, GateVerdict, Request, Step};
use tidegate_segment::lane;

use super::Tenant;
use super::rule_index::RuleIndex;
use super::rule_index::tests::rule_index;
use super::tests::tenant;

const MIB: u64 = 1024 * 1024;
const SECOND_NS: u64 = 1_000_000_000;

/// Memory that the files of both pages take, bytes.
fn resident_bytes(tenant: &Tenant) -> u64 {
    let files = [&tenant.files().board, &tenant.files().ledger];
    // A block of `stat` has 512 bytes, whatever the file system.
    let blocks = files.map(|file| rustix::fs::fstat(file).unwrap().st_blocks);
    blocks
        .map(|blocks| u64::try_from(blocks).unwrap() * 512)
        .iter()
        .sum()
}

/// Enters and, where that is admitted, exits; says whether it was.
fn pass(tenant: &Tenant, slot: Slot, args: &[Arg<'_>]) -> bool {
    let (gate, lane) = (tenant.gate(), lane::current());
    let request = Request {
        args,
        ..Request::default()
    };
    match gate.enter(gate.board(), lane, slot, request) {
        Step::Done(GateVerdict::Admitted(pass)) => {
            gate.exit(gate.board(), lane, pass, Outcome::Ok);
            true
        }
        Step::Done(GateVerdict::Refused(_) | GateVerdict::Stale) | Step::Wait(_) => false,
    }
}

#[test]
fn a_hundred_thousand_resources_with_a_rule_each_take_less_than_64_mib() {
    check_memory_of_many("[[flow]]\ncount = 100");
}

#[test]
fn a_hundred_thousand_resources_with_a_breaker_each_take_less_than_64_mib() {
    check_memory_of_many(
        "[[degrade]]\ngrade = \"error_ratio\"\nthreshold = 0.5\nrecovery_timeout = \"5s\"",
    );
}

#[expect(clippy::print_stdout, reason = "the figure is quoted in the README")]
fn check_memory_of_many(rule: &str) {
    const RESOURCES: u32 = 100_000;
    // One slot in eight is kept for names in rules; these are names in rules.
    let tenant = tenant(Geometry::new(RESOURCES + 2, 4, 2, 2).unwrap());
    let directory = tenant.directory();
    let mut rules = String::new();
    for number in 0..RESOURCES {
        let resource = format!("orders/create-from-basket/{number:06}");
        writeln!(rules, "{rule}\nresource = \"{resource}\"").unwrap();
    }
    let rules = Arc::clone(rule_index(&rules).rules());
    // Twice, so that both copies of the rules are written.
    for now_ns in [0, SECOND_NS] {
        let published = directory
            .publish(RuleIndex::of(Arc::clone(&rules)), now_ns)
            .unwrap();
        assert_eq!(published.unplaced, []);
    }
    let passed = directory
        .list()
        .iter()
        .filter(|(_name, slot)| pass(&tenant, *slot, &[]))
        .count();
    assert!(
        passed > 100_000,
        "{passed} passed, and the overflow resource"
    );
    let bytes = resident_bytes(&tenant);
    println!(
        "{} bytes, {} a resource",
        bytes,
        bytes / u64::from(RESOURCES)
    );
    assert!(bytes < 64 * MIB, "{bytes} bytes");
}

#[test]
#[expect(clippy::print_stdout, reason = "the figure is quoted in the README")]
fn a_million_values_of_a_parameter_take_no_more_memory_than_one() {
    let tenant = tenant(Geometry::new(1024, 4, 2, 2).unwrap());
    let directory = tenant.directory();
    let rule = "[[param]]\nresource = \"query\"\nindex = 0\ncount = 1";
    directory.publish(rule_index(rule), 0).unwrap();
    let slot = directory.resolve("query").slot;
    let ask = |value: u64| {
        let value = Arg::One(name_hash(&value.to_le_bytes()));
        pass(&tenant, slot, &[value])
    };
    assert!(ask(0));
    let before = resident_bytes(&tenant);
    let passed = (1..1_000_000).filter(|value| ask(*value)).count();
    // A newcomer in a full set inherits what is left there, so most find no token.
    println!("{passed} of a million values passed, {before} bytes");
    // The first request that the machine makes slow touches the page of response times.
    let more = resident_bytes(&tenant) - before;
    assert!(more <= 4096, "{more} bytes more");
}
