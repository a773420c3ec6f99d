//! JVMs of groups in fixture trees.

use std::fs;
use std::os::unix::fs::symlink;

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, missing, value};
use super::super::parse::hsperfdata;
use super::super::reading::Fault;

const FILE: &str = "proc/10/root/tmp/hsperfdata_app/7";

fn perf_data(full_gcs: i64, gc_ns: i64) -> Vec<u8> {
    let counters = [
        ("sun.gc.collector.0.time", 0),
        ("sun.gc.collector.1.invocations", full_gcs),
        ("sun.gc.collector.1.time", gc_ns),
        ("sun.os.hrt.frequency", 1_000_000_000),
        ("sun.gc.generation.0.maxCapacity", 100),
        ("sun.gc.generation.1.maxCapacity", 300),
        ("sun.gc.generation.1.space.0.used", 100),
    ];
    hsperfdata::made(&counters, &[])
}

/// A JVM with pid 10, which is 7 in its own pid namespace.
fn jvm() -> Tree {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ("cgroup/app/cgroup.procs", "10\n"),
        ("proc/10/status", "Name:\tjava\nNSpid:\t10\t7\n"),
        ("proc/10/task/10/stat", "10 (java) S 1\n"),
        ("proc/10/task/10/schedstat", "0 0 0\n"),
        (FILE, ""),
    ]);
    fs::write(tree.path(FILE), perf_data(5, 0)).unwrap();
    tree
}

const TOLD: [SignalId; 3] = [SignalId::GcShare, SignalId::FullGc, SignalId::HeapUsed];

#[test]
fn collections_and_heap_of_a_jvm_in_a_container_are_read() {
    let tree = jvm();
    let (mut sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::HeapUsed), 0.25);
    assert_eq!(
        missing(&sampler, key, SignalId::FullGc).fault,
        Fault::FirstSample
    );
    fs::write(tree.path(FILE), perf_data(8, 400_000_000)).unwrap();
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::GcShare), 0.4);
    close(value(&sampler, key, SignalId::FullGc), 3.0);
}

#[test]
fn a_jvm_without_the_file_is_not_measured_and_says_why() {
    let tree = jvm();
    fs::remove_file(tree.path(FILE)).unwrap();
    let (mut sampler, key) = tree.watching("/app");
    for id in TOLD {
        assert_eq!(missing(&sampler, key, id).fault, Fault::NoPerfData);
    }
    fs::write(tree.path(FILE), perf_data(5, 0)).unwrap();
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::HeapUsed), 0.25);
}

#[test]
fn a_link_in_its_place_is_not_followed_and_told_as_such() {
    let tree = jvm();
    fs::rename(tree.path(FILE), tree.path("elsewhere")).unwrap();
    symlink(tree.path("elsewhere"), tree.path(FILE)).unwrap();
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::HeapUsed).fault,
        Fault::Malformed("a link, a pipe or a device in its place")
    );
}

#[test]
fn among_more_names_than_are_looked_at_it_is_not_called_absent() {
    let tree = jvm();
    fs::remove_file(tree.path(FILE)).unwrap();
    for number in 0..5000 {
        fs::write(tree.path(&format!("proc/10/root/tmp/{number}")), "").unwrap();
    }
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::FullGc).fault,
        Fault::Crowded
    );
}

#[test]
fn a_group_without_a_jvm_says_so() {
    let tree = jvm();
    tree.write(&[("proc/10/task/10/stat", "10 (nginx) S 1\n")]);
    let (sampler, key) = tree.watching("/app");
    for id in TOLD {
        assert_eq!(missing(&sampler, key, id).fault, Fault::NoJvm);
    }
}

#[test]
fn where_a_thread_cannot_be_looked_at_that_is_told_and_not_that_no_jvm_runs() {
    let tree = jvm();
    let stat = tree.path("proc/10/task/10/stat");
    fs::remove_file(&stat).unwrap();
    // It opens and cannot be read.
    fs::create_dir(&stat).unwrap();
    let (sampler, key) = tree.watching("/app");
    for id in TOLD {
        let missing = missing(&sampler, key, id);
        assert_eq!(missing.fault, Fault::Os(libc::EISDIR), "{}", id.name());
        assert_eq!(missing.source, "/proc/PID/task/TID/stat");
    }
}

#[test]
fn a_file_cut_at_every_byte_gives_no_false_zero() {
    let whole = perf_data(8, 400_000_000);
    for end in (0..whole.len()).step_by(7) {
        let tree = jvm();
        let (mut sampler, key) = tree.watching("/app");
        fs::write(tree.path(FILE), &whole[..end]).unwrap();
        sampler.sample(2 * SECOND_NS);
        for id in TOLD {
            let told = sampler.group(key).unwrap().readings().value(id);
            assert_ne!(told, Some(0.0), "{} cut at {end}", id.name());
        }
    }
}
