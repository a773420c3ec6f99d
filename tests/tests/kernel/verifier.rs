//! How many instructions the kernel's verifier goes through: an early sign of a program that grows
//! towards its limit of a million, or that an older kernel would refuse.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tidegate_agent::ebpf::{Measuring, Rung};
use tidegate_tests::skip;

/// Lines `program count`; the first line names the kernel.
const FILE: &str = "../ebpf/prebuilt/verified.txt";

/// Other kernels go other ways, but not that much longer ones.
const FACTOR: u32 = 3;

fn counted() -> Option<BTreeMap<String, u32>> {
    let mut counted = BTreeMap::new();
    for rung in [Rung::Typed, Rung::SchedInfo, Rung::Plain] {
        match Measuring::begin(rung) {
            Ok(measuring) => counted.extend(
                measuring
                    .programs()
                    .into_iter()
                    .filter_map(|program| Some((program.name, program.verified?))),
            ),
            // Plain tracepoints need a tracefs, which not every machine has mounted.
            Err(_missed) if rung == Rung::Plain => {}
            Err(missed) => {
                skip::skip(&format!("needs programs in the kernel: {missed}"));
                return None;
            }
        }
    }
    Some(counted)
}

/// The counts of a file.
fn recorded(text: &str) -> BTreeMap<&str, u32> {
    let pairs = text.lines().skip(1).filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(program, count)| Some((program, count.parse().ok()?)))
        .collect()
}

#[test]
fn the_verifier_goes_through_as_many_instructions_as_recorded() {
    let Some(counted) = counted() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let mut text = format!("kernel {release}");
        // What cannot be loaded here stays as it is recorded.
        let old = fs::read_to_string(&path).unwrap_or_default();
        let mut all: BTreeMap<&str, u32> = recorded(&old);
        all.extend(
            counted
                .iter()
                .map(|(program, count)| (program.as_str(), *count)),
        );
        for (program, count) in &all {
            writeln!(text, "{program} {count}").expect("a string takes it");
        }
        fs::write(&path, text).expect("the file is ours");
    }
    let text = fs::read_to_string(&path).expect("the counts are recorded");
    let head = text.lines().next().expect("it has lines");
    let is_same_kernel = head == format!("kernel {}", release.trim());
    let recorded = recorded(&text);
    for (program, count) in &counted {
        let before = recorded.get(program.as_str()).copied();
        let before = before.unwrap_or_else(|| panic!("{program} is not recorded: UPDATE_GOLDEN=1"));
        let allowed = if is_same_kernel {
            before
        } else {
            before * FACTOR
        };
        assert!(
            *count <= allowed,
            "{program}: {count} instructions, {before} recorded on {head}"
        );
        assert!(
            !is_same_kernel || *count == before,
            "{program}: {count}, {before} recorded"
        );
    }
}
