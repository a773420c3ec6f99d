//! Groups in fixture trees that may not run on every CPU, beside others that use theirs.

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, value};
use super::{CpusBusy, Limiter};

/// `/proc/stat` of four CPUs with so much busy time and idle time each, clock ticks.
fn stat(cpus: [(u64, u64); 4]) -> String {
    let (busy, idle) = cpus
        .iter()
        .fold((0, 0), |(busy, idle), cpu| (busy + cpu.0, idle + cpu.1));
    let lines = (0..).zip(cpus).fold(
        format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n"),
        |lines, (cpu, (busy, idle))| lines + &format!("cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0\n"),
    );
    lines + "procs_running 3\nprocs_blocked 0\n"
}

/// A group with one process, that may run on these CPUs by its cpuset and by itself.
fn group(cpuset: &str, affinity: &str) -> Tree {
    let tree = Tree::new(&[
        ("proc/stat", &stat([(0, 0); 4])),
        ("cgroup/cgroup.controllers", "cpuset cpu\n"),
        ("cgroup/app/cpuset.cpus.effective", cpuset),
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ("cgroup/app/cgroup.procs", "10\n"),
        ("proc/10/task/10/stat", "10 (app) S 1 1 1 0 -1 4194304\n"),
        ("proc/10/task/10/schedstat", "0 0 0\n"),
    ]);
    allow(&tree, 10, affinity);
    tree
}

fn allow(tree: &Tree, pid: u32, cpus: &str) {
    let status = format!("Name:\tapp\nCpus_allowed_list:\t{cpus}\n");
    tree.write(&[(&format!("proc/{pid}/status"), &status)]);
}

/// The busy share after a second in which the group used a quarter of a CPU.
fn busy(tree: &Tree, cpus: [(u64, u64); 4]) -> (f64, CpusBusy) {
    // The first look comes after the first sample of the group.
    let (mut sampler, key) = tree.watching("/app");
    sampler.sample(2 * SECOND_NS);
    tree.write(&[
        ("proc/stat", &stat(cpus)),
        ("cgroup/app/cpu.stat", "usage_usec 250000\n"),
    ]);
    sampler.sample(3 * SECOND_NS);
    let group = sampler.group(key).unwrap();
    (
        value(&sampler, key, SignalId::EffectiveCpus),
        group.cpus_busy(),
    )
}

/// The first CPU is full, the second does a quarter, the others do nothing.
const FIRST_IS_FULL: [(u64, u64); 4] = [(100, 0), (25, 75), (0, 100), (0, 100)];

#[test]
fn others_on_the_cpus_of_a_cpuset_keep_them_busy_and_those_elsewhere_do_not() {
    for (cpuset, share) in [
        ("0", 1.0),
        ("1", 0.25),
        ("0-1", 0.625),
        ("0-2", 125.0 / 300.0),
    ] {
        let (_cpus, busy) = busy(&group(cpuset, "0-3"), FIRST_IS_FULL);
        let CpusBusy::Share(told) = busy else {
            panic!("{cpuset}: {busy:?}");
        };
        close(told, share);
    }
    let (cpus, busy) = busy(&group("0-3", "0-3"), FIRST_IS_FULL);
    assert_eq!(busy, CpusBusy::AsHost);
    close(cpus, 4.0);
}

#[test]
fn what_the_kernel_counts_in_steps_is_not_taken_for_others() {
    // Nine hundredths more than its own quarter.
    let (_cpus, busy) = busy(&group("1", "0-3"), [(0, 100), (34, 66), (0, 100), (0, 100)]);
    assert_eq!(busy, CpusBusy::Share(0.25));
}

#[test]
fn a_process_that_binds_itself_to_a_cpu_has_that_one_alone() {
    let (cpus, busy) = busy(&group("0-3", "0"), FIRST_IS_FULL);
    close(cpus, 1.0);
    assert_eq!(busy, CpusBusy::Share(1.0));
    // What the cpuset no longer allows is old news.
    let (cpus, _busy) = busy_of_two("2-3", ["0", "0"]);
    close(cpus, 2.0);
}

fn busy_of_two(cpuset: &str, affinities: [&str; 2]) -> (f64, CpusBusy) {
    let tree = group(cpuset, affinities[0]);
    tree.write(&[
        ("cgroup/app/cgroup.procs", "10\n20\n"),
        ("proc/20/task/20/stat", "20 (app) S 1 1 1 0 -1 4194304\n"),
        ("proc/20/task/20/schedstat", "0 0 0\n"),
    ]);
    allow(&tree, 20, affinities[1]);
    busy(&tree, FIRST_IS_FULL)
}

#[test]
fn processes_that_bind_themselves_apart_have_all_their_cpus_together() {
    let (cpus, _busy) = busy_of_two("0-3", ["0", "2"]);
    close(cpus, 2.0);
    let (cpus, busy) = busy_of_two("0-3", ["0", "0-3"]);
    close(cpus, 4.0);
    assert_eq!(busy, CpusBusy::AsHost);
    // One that does not tell may run anywhere.
    let tree = group("0-3", "0");
    tree.write(&[("proc/10/status", "Name:\tapp\n")]);
    close(self::busy(&tree, FIRST_IS_FULL).0, 4.0);
}

#[test]
fn a_process_that_binds_itself_is_limited_by_its_list() {
    let tree = group("0-3", "1");
    let (mut sampler, key) = tree.watching("/app");
    sampler.sample(2 * SECOND_NS);
    assert_eq!(sampler.group(key).unwrap().limiter(), Limiter::CpuSet);
}
