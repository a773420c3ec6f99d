//! What users of such systems have reported of misread machines, and the test that holds the right value.
//!
//! | nr | public report | right | test |
//! |---|---|---|---|
//! | 1 | Sentinel#1146, #2100: 6 % in a starved container of a large host | use against the own limit | `cgroup::tests::a_container_with_two_cpus_on_a_large_host_is_read_against_its_own_limit` |
//! | 3 | go-zero#1636, kratos#2170: `max` is not understood | no limit here | `cgroup::tests::max_is_no_limit_in_each_of_its_spellings` |
//! | 4 | golang/go#81180, cri-o#9251: the leaf alone is read | the tightest of all above | `cgroup::tests::the_tightest_quota_of_all_groups_above_counts_and_is_named`, `layout_tests::a_mount_that_shows_one_container_only_is_resolved` |
//! | 5 | coder/clistat#25, openjdk/jdk#485: `0::/` beside v1; cpuset taken for cpu | each controller by its whole name | `layout_tests::each_controller_is_read_at_its_own_path`, `cgroup::tests::a_v2_group_without_the_cpu_controller_is_not_called_never_throttled` |
//! | 6 | tikv#11609, cgroups-rs#36: panics on odd files | not measured, with the cause | `cgroup::tests::each_file_missing_or_cut_at_every_byte_gives_no_false_zero`, [`every_file_of_a_hybrid_host_cut_at_every_byte_gives_no_false_zero`], `refusal_tests` |
//! | 7 | Envoy#39978: no `cpu.max` at the root ends the start | the CPUs that are online | `cgroup::tests::max_is_no_limit_in_each_of_its_spellings` |
//! | 9 | llmman#485, Containarium#1029: cpusets misread | union of the ranges; empty is the parent's | `cgroup::tests::cpu_sets_narrow_the_online_cpus_and_an_empty_one_is_the_parents` |
//! | 10 | golang/go#73193: a changed limit is never seen | in force at the next sample | `cgroup::tests::a_limit_that_is_changed_is_in_force_at_the_next_sample` |
//! | 13 | Sentinel#1937: NaN blocks everything | not measured | `cgroup::tests::a_zero_in_the_quota_is_not_measured_rather_than_infinite`, `cgroup::tests::an_interval_without_length_and_a_step_back_give_no_value` |
//! | 15 | lxcfs#13, #203: load of the host in a container, or a frozen one | the host's alone; frozen is not measured | [`a_group_has_no_load_average_and_says_where_it_is`], `host::tests::a_load_average_that_stands_still_over_changing_tasks_is_not_a_value` |
//! | 16 | kubernetes-mixin#108: false alarms of throttling | share of periods and of time, with enough periods | `cgroup::throttle::tests`, three of them |
//! | 17 | node_exporter#1961, psi_exporter#7: PSI absent or short | each line by itself; no other file is taken for it | `pressure::tests::a_file_without_the_full_line_tells_the_other`, `refusal_tests`, [`the_switch_of_a_groups_pressure_is_not_its_pressure`] |
//! | 18 | procps#214, gopsutil#1056: a name with `)` or a newline | the last `)` ends it | `processes::tests::states_waits_and_collectors_are_told_of_a_group` |
//! | 18b | procfs#27, rust-psutil#117: a file opens and the read gives half | gone | [`a_thread_whose_file_is_cut_is_whole_or_gone`], `processes::tests::a_thread_that_ends_while_it_is_looked_at_is_gone_and_no_more` |

use std::fs;

use tidegate_abi::signal::SignalId;

use super::fixture::{SECOND_NS, Tree, close, missing, value};
use super::reading::Readings;
use crate::procfs::NoValue;

/// A hybrid host with every kind of v1 file that is read, as content of the first sample and of the second.
/// Nothing of it is 0 in the second.
const HYBRID: [(&str, &str, &str); 11] = [
    (
        "proc/stat",
        "cpu  100 0 50 850 0 0 0 10\ncpu0 1\ncpu1 1\nprocs_running 2\nprocs_blocked 1\n",
        "cpu  160 0 80 950 0 0 0 20\ncpu0 1\ncpu1 1\nprocs_running 3\nprocs_blocked 1\n",
    ),
    (
        "proc/self/mountinfo",
        "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         2 0 0:2 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n",
        "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         2 0 0:2 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n",
    ),
    (
        "proc/77/cgroup",
        "2:cpuacct:/app\n1:cpu:/app\n0::/\n",
        "2:cpuacct:/app\n1:cpu:/app\n0::/\n",
    ),
    ("cgroup/cpu/app/cgroup.procs", "77\n", "77\n"),
    ("cgroup/cpuacct/app/cgroup.procs", "77\n", "77\n"),
    ("cgroup/cpu/app/cpu.cfs_quota_us", "20000\n", "20000\n"),
    ("cgroup/cpu/app/cpu.cfs_period_us", "100000\n", "100000\n"),
    (
        "cgroup/cpu/app/cpu.stat",
        "nr_periods 3\nnr_throttled 1\nthrottled_time 5\nnr_bursts 1\n",
        "nr_periods 36\nnr_throttled 32\nthrottled_time 1704000005\nnr_bursts 4\n",
    ),
    (
        "cgroup/cpuacct/app/cpuacct.usage",
        "10000000\n",
        "200000000\n",
    ),
    (
        "cgroup/cpuacct/app/cpuacct.usage_user",
        "6000000\n",
        "130000000\n",
    ),
    (
        "cgroup/cpuacct/app/cpuacct.usage_sys",
        "4000000\n",
        "70000000\n",
    ),
];

/// Samples the hybrid host twice; the second time `name` is cut after `end` bytes, or gone where that is 0.
fn check_cut(name: &str, end: usize) {
    let tree = Tree::new(&HYBRID.map(|(name, first, _second)| (name, first)));
    let mut sampler = tree.sampler();
    let Ok(key) = sampler.watch_process(77) else {
        panic!("the whole tree has the group");
    };
    sampler.sample(SECOND_NS);
    tree.write(&HYBRID.map(|(name, _first, second)| (name, second)));
    let whole = fs::read(tree.path(name)).unwrap();
    fs::write(tree.path(name), whole.get(..end).unwrap()).unwrap();
    if end == 0 {
        fs::remove_file(tree.path(name)).unwrap();
    }
    sampler.sample(2 * SECOND_NS);
    if name.starts_with("proc/") {
        // Who begins with that tree finds the group, or says why not.
        let mut later = tree.sampler();
        let _found_or_not = later.watch_process(77).is_ok();
        later.sample(2 * SECOND_NS);
    }
    let group = sampler
        .group(key)
        .into_iter()
        .map(super::WatchedGroup::readings);
    for (id, reading) in group.chain([sampler.host()]).flat_map(Readings::iter) {
        let told = reading.value();
        assert_ne!(told, Some(0.0), "{} with {name} cut at {end}", id.name());
    }
}

#[test]
fn every_file_of_a_hybrid_host_cut_at_every_byte_gives_no_false_zero() {
    for (name, _first, second) in HYBRID {
        for end in 0..=second.len() {
            check_cut(name, end);
        }
    }
}

#[test]
fn a_group_has_no_load_average_and_says_where_it_is() {
    let tree = Tree::new(&[
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ("proc/loadavg", "7.50 6.00 5.00 3/80 9\n"),
        ("proc/stat", "cpu  1 0 0 9\ncpu0 1 0 0 9\n"),
    ]);
    let (sampler, key) = tree.watching("/app");
    for id in [SignalId::Load1, SignalId::Load5, SignalId::Load15] {
        assert_eq!(missing(&sampler, key, id).fault, NoValue::HostOnly);
    }
    close(sampler.host().value(SignalId::Load1).unwrap(), 7.5);
}

#[test]
fn the_switch_of_a_groups_pressure_is_not_its_pressure() {
    let tree = Tree::new(&[
        ("cgroup/cgroup.controllers", "cpu\n"),
        ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ("cgroup/app/cgroup.pressure", "1\n"),
    ]);
    let (mut sampler, key) = tree.watching("/app");
    let absent = missing(&sampler, key, SignalId::PsiCpu);
    assert!(absent.fault.is_absent(), "{absent}");
    // A kernel that puts such a word into the file itself tells nothing either.
    tree.write(&[("cgroup/app/cpu.pressure", "1\n")]);
    sampler.sample(3 * SECOND_NS);
    let odd = missing(&sampler, key, SignalId::PsiCpu);
    assert_eq!(odd.fault, NoValue::NoField("some"));
}

#[test]
fn a_thread_whose_file_is_cut_is_whole_or_gone() {
    let stat = "10 (a\nb) D 1 1 1 0 -1\n";
    for end in 0..=stat.len() {
        let tree = Tree::new(&[
            ("cgroup/app/cpu.stat", "usage_usec 0\n"),
            ("cgroup/app/cgroup.procs", "10\n20\n"),
            ("proc/10/task/10/stat", stat.get(..end).unwrap()),
            ("proc/10/task/10/schedstat", "5 5 5\n"),
            ("proc/20/task/20/stat", "20 (sh) D 1\n"),
            ("proc/20/task/20/schedstat", "5 5 5\n"),
        ]);
        let (sampler, key) = tree.watching("/app");
        let blocked = value(&sampler, key, SignalId::Blocked);
        let threads = value(&sampler, key, SignalId::Threads);
        assert!(
            [1.0, 2.0].contains(&threads) && (blocked - threads).abs() < 0.5,
            "{threads} threads, {blocked} of them blocked, cut at {end}"
        );
    }
}
