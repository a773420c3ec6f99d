//! JVMs of groups in fixture trees.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use rustix::fs::{major, minor};

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, missing, value};
use super::super::parse::hsperfdata;
use crate::procfs::NoValue;

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
    let names = [
        ("sun.gc.collector.0.name", "Copy"),
        ("sun.gc.collector.1.name", "MSC"),
    ];
    hsperfdata::made(&counters, &names)
}

/// What `/proc` tells of a JVM that maps the file at `name`, as `inner` in its own pid namespace.
fn write_jvm(tree: &Tree, pid: u32, inner: u32, mapped: Option<&str>) {
    let user = rustix::process::geteuid().as_raw();
    let numbers = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18";
    let mapping = mapped.map_or_else(String::new, |name| {
        let file = fs::metadata(tree.path(name)).unwrap();
        let (device, inode) = (file.dev(), file.ino());
        format!(
            "7f0e-7f0f rw-s 00000000 {:02x}:{:02x} {inode} /tmp/hsperfdata_app/{inner}\n",
            major(device),
            minor(device),
        )
    });
    let file = |name: &str| format!("proc/{pid}/{name}");
    tree.write(&[
        (
            &file("status"),
            &format!("Name:\tjava\nNSpid:\t{pid}\t{inner}\nUid:\t0\t{user}\t0\t0\n"),
        ),
        (&file("stat"), &format!("{pid} (java) S {numbers} 4711 5\n")),
        (
            &file("maps"),
            &format!("00400000-00401000 r-xp 00000000 08:01 77 /usr/bin/java\n{mapping}"),
        ),
        (
            &file(&format!("task/{pid}/stat")),
            &format!("{pid} (java) S 1\n"),
        ),
        (&file(&format!("task/{pid}/schedstat")), "0 0 0\n"),
    ]);
}

/// A JVM with pid 10, which is 7 in its own pid namespace.
fn jvm() -> Tree {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ("cgroup/app/cgroup.procs", "10\n"),
        (FILE, ""),
    ]);
    fs::write(tree.path(FILE), perf_data(5, 0)).unwrap();
    write_jvm(&tree, 10, 7, Some(FILE));
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
        NoValue::FirstSample
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
        assert_eq!(missing(&sampler, key, id).fault, NoValue::NoPerfData);
    }
    fs::write(tree.path(FILE), perf_data(5, 0)).unwrap();
    write_jvm(&tree, 10, 7, Some(FILE));
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::HeapUsed), 0.25);
}

/// Two JVMs, each process 1 of its own pid namespace, with one `/tmp`.
fn two_with_one_tmp() -> Tree {
    let tree = Tree::new(&[
        ("cgroup/busy/cpu.stat", "usage_usec 0\n"),
        ("cgroup/busy/cgroup.procs", "10\n"),
        ("cgroup/idle/cpu.stat", "usage_usec 0\n"),
        ("cgroup/idle/cgroup.procs", "20\n"),
        ("tmp/hsperfdata_app/1", ""),
        ("tmp/hsperfdata_app/gone", ""),
    ]);
    for pid in [10, 20] {
        fs::create_dir_all(tree.path(&format!("proc/{pid}/root"))).unwrap();
        // A directory of the container itself, which both have mounted: here the same files by other names.
        let own = tree.path(&format!("proc/{pid}/root/tmp/hsperfdata_app"));
        fs::create_dir_all(&own).unwrap();
        fs::hard_link(tree.path("tmp/hsperfdata_app/1"), own.join("1")).unwrap();
    }
    fs::write(tree.path("tmp/hsperfdata_app/1"), perf_data(25, 0)).unwrap();
    write_jvm(&tree, 10, 1, Some("tmp/hsperfdata_app/1"));
    tree
}

#[test]
fn field_s3_a_file_counts_for_the_jvm_that_maps_it_and_for_no_other() {
    for (mapped, fault) in [
        // Started with -XX:-UsePerfData.
        (None, NoValue::NoPerfData),
        // Its own file was taken for one of a dead JVM and removed by the other.
        (Some("tmp/hsperfdata_app/gone"), NoValue::NotItsOwn),
    ] {
        let tree = two_with_one_tmp();
        write_jvm(&tree, 20, 1, mapped);
        let (sampler, busy) = tree.watching("/busy");
        close(value(&sampler, busy, SignalId::HeapUsed), 0.25);
        let (sampler, idle) = tree.watching("/idle");
        for id in TOLD {
            assert_eq!(missing(&sampler, idle, id).fault, fault, "{}", id.name());
        }
    }
}

#[test]
fn field_s3_a_file_is_proved_again_when_the_process_is_another() {
    let tree = jvm();
    let (mut sampler, key) = tree.watching("/app");
    close(value(&sampler, key, SignalId::HeapUsed), 0.25);
    // The pid was used again, by a JVM that maps nothing.
    write_jvm(&tree, 10, 7, None);
    let stat = fs::read_to_string(tree.path("proc/10/stat")).unwrap();
    tree.write(&[("proc/10/stat", &stat.replace("4711", "5000"))]);
    sampler.sample(2 * SECOND_NS);
    assert_eq!(
        missing(&sampler, key, SignalId::FullGc).fault,
        NoValue::NoPerfData
    );
}

#[test]
fn field_s3_a_file_of_another_user_is_not_its_own() {
    let tree = jvm();
    let status = fs::read_to_string(tree.path("proc/10/status")).unwrap();
    let user = rustix::process::geteuid().as_raw();
    let other = status.replace(&format!("Uid:\t0\t{user}"), "Uid:\t0\t4242");
    tree.write(&[("proc/10/status", &other)]);
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::FullGc).fault,
        NoValue::NotItsOwn
    );
}

#[test]
fn a_link_in_its_place_is_not_followed_and_told_as_such() {
    let tree = jvm();
    fs::rename(tree.path(FILE), tree.path("elsewhere")).unwrap();
    symlink(tree.path("elsewhere"), tree.path(FILE)).unwrap();
    let (sampler, key) = tree.watching("/app");
    assert_eq!(
        missing(&sampler, key, SignalId::HeapUsed).fault,
        NoValue::Malformed("a link, a pipe or a device in its place")
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
        NoValue::Crowded
    );
}

#[test]
fn a_group_without_a_jvm_says_so() {
    let tree = jvm();
    tree.write(&[("proc/10/task/10/stat", "10 (nginx) S 1\n")]);
    let (sampler, key) = tree.watching("/app");
    for id in TOLD {
        assert_eq!(missing(&sampler, key, id).fault, NoValue::NoJvm);
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
        assert_eq!(missing.fault, NoValue::Os(libc::EISDIR), "{}", id.name());
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
