//! Groups in fixture trees: the layouts of section "table of truth", the reports of misread limits.

use std::fs;
use std::path::Path;

use tidegate_abi::signal::SignalId;

use super::super::fixture::{SECOND_NS, Tree, close, missing, value};
use super::Limiter;
use crate::procfs::GroupPattern;
use crate::procfs::NoValue;

/// `/proc/stat` of a host with 32 CPUs.
fn stat_of_32_cpus(busy: u64, idle: u64) -> String {
    let cpus = (0..32).fold(String::new(), |lines, cpu| {
        lines + &format!("cpu{cpu} 0 0 0 0\n")
    });
    format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n{cpus}procs_running 3\nprocs_blocked 0\n")
}

/// A container's view of cgroup v2: its own group at the top of the mount.
fn container(cpu_max: &str) -> Tree {
    Tree::new(&[
        ("proc/stat", &stat_of_32_cpus(100, 1000)),
        ("cgroup/cgroup.controllers", "cpuset cpu io memory\n"),
        ("cgroup/cpu.max", cpu_max),
        (
            "cgroup/cpu.stat",
            "usage_usec 1000000\nuser_usec 900000\nsystem_usec 100000\n",
        ),
    ])
}

const USED_1900_MS: (&str, &str) = (
    "cgroup/cpu.stat",
    "usage_usec 2900000\nuser_usec 2600000\nsystem_usec 300000\n",
);

#[test]
fn a_container_with_two_cpus_on_a_large_host_is_read_against_its_own_limit() {
    let tree = container("200000 100000\n");
    let (mut sampler, key) = tree.watching("/");
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::FirstSample
    );
    tree.write(&[USED_1900_MS, ("proc/stat", &stat_of_32_cpus(292, 4008))]);
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::Cpu), 0.95);
    close(value(&sampler, key, SignalId::UsedCpus), 1.9);
    close(value(&sampler, key, SignalId::CpuUser), 0.85);
    close(value(&sampler, key, SignalId::CpuSystem), 0.1);
    close(value(&sampler, key, SignalId::EffectiveCpus), 2.0);
    close(sampler.host().value(SignalId::Cpu).unwrap(), 0.06);
}

#[test]
fn a_limit_that_is_changed_is_in_force_at_the_next_sample() {
    let tree = container("200000 100000\n");
    let (mut sampler, key) = tree.watching("/");
    tree.write(&[USED_1900_MS, ("cgroup/cpu.max", "400000 100000\n")]);
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::Cpu), 0.475);
}

#[test]
fn max_is_no_limit_in_each_of_its_spellings() {
    for spelling in ["max 100000\n", "max", "max 100000", ""] {
        let tree = container(spelling);
        let (sampler, key) = tree.watching("/");
        close(value(&sampler, key, SignalId::EffectiveCpus), 32.0);
        assert_eq!(
            missing(&sampler, key, SignalId::Throttle).fault,
            NoValue::NoQuotaInSight
        );
    }
    let tree = container("max");
    fs::remove_file(tree.path("cgroup/cpu.max")).unwrap();
    let (sampler, key) = tree.watching("/");
    close(value(&sampler, key, SignalId::EffectiveCpus), 32.0);
    assert_eq!(sampler.group(key).unwrap().limiter(), Limiter::Online);
}

#[test]
fn a_zero_in_the_quota_is_not_measured_rather_than_infinite() {
    for quota in ["0 100000\n", "200000 0\n", "x 100000\n", "200000\n"] {
        let tree = container(quota);
        let (mut sampler, key) = tree.watching("/");
        tree.write(&[USED_1900_MS]);
        sampler.sample(2 * SECOND_NS);
        assert_eq!(
            missing(&sampler, key, SignalId::Cpu).source,
            "cpu.max",
            "{quota:?}"
        );
        assert_eq!(
            missing(&sampler, key, SignalId::EffectiveCpus).source,
            "cpu.max"
        );
        close(value(&sampler, key, SignalId::UsedCpus), 1.9);
    }
}

#[test]
fn the_tightest_quota_of_all_groups_above_counts_and_is_named() {
    let tree = Tree::new(&[
        ("proc/stat", &stat_of_32_cpus(100, 1000)),
        ("cgroup/cgroup.controllers", "cpu\n"),
        ("cgroup/pods/cpu.max", "400000 100000\n"),
        ("cgroup/pods/one/cpu.max", "1000 100000\n"),
        ("cgroup/pods/one/app/cpu.max", "max 100000\n"),
        ("cgroup/pods/one/app/cpu.stat", "usage_usec 0\n"),
    ]);
    let (sampler, key) = tree.watching("/pods/one/app");
    close(value(&sampler, key, SignalId::EffectiveCpus), 0.01);
    assert_eq!(
        sampler.group(key).unwrap().limiter(),
        Limiter::Quota(Path::new("pods/one"))
    );
}

#[test]
fn cpu_sets_narrow_the_online_cpus_and_an_empty_one_is_the_parents() {
    for (list, cpus) in [
        ("0-1,4\n", 3.0),
        ("0-3,2-5", 6.0),
        ("\n", 8.0),
        ("", 8.0),
        ("99\n", 1.0),
    ] {
        let tree = container("max");
        tree.write(&[
            ("cgroup/cpuset.cpus.effective", "0-7\n"),
            ("cgroup/app/cpuset.cpus.effective", list),
            ("cgroup/app/cpu.stat", "usage_usec 0\n"),
        ]);
        let (sampler, key) = tree.watching("/app");
        close(value(&sampler, key, SignalId::EffectiveCpus), cpus);
        assert_eq!(sampler.group(key).unwrap().limiter(), Limiter::CpuSet);
    }
}

#[test]
fn a_list_that_cannot_be_read_is_not_all_cpus() {
    let tree = container("max");
    tree.write(&[("cgroup/cpuset.cpus.effective", "0-\n")]);
    let (sampler, key) = tree.watching("/");
    assert_eq!(
        missing(&sampler, key, SignalId::EffectiveCpus).source,
        "cpuset.cpus.effective"
    );
}

#[test]
fn an_interval_without_length_and_a_step_back_give_no_value() {
    let tree = container("200000 100000\n");
    let (mut sampler, key) = tree.watching("/");
    sampler.sample(SECOND_NS);
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::NoTimePassed
    );
    tree.write(&[("cgroup/cpu.stat", "usage_usec 5\n")]);
    sampler.sample(2 * SECOND_NS);
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::WentBack
    );
    assert_eq!(
        missing(&sampler, key, SignalId::CpuUser).fault,
        NoValue::NoField("user_usec")
    );
    tree.write(&[("cgroup/cpu.stat", "usage_usec 5000000000\n")]);
    sampler.sample(3 * SECOND_NS);
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::Implausible
    );
}

#[test]
fn a_v2_group_without_the_cpu_controller_is_not_called_never_throttled() {
    let tree = container("max");
    tree.write(&[
        ("cgroup/cgroup.controllers", "\n"),
        ("cgroup/cpu.stat.local", ""),
    ]);
    fs::remove_file(tree.path("cgroup/cpu.max")).unwrap();
    let (mut sampler, key) = tree.watching("/");
    tree.write(&[USED_1900_MS]);
    sampler.sample(2 * SECOND_NS);
    for id in [SignalId::Throttle, SignalId::ThrottledTime, SignalId::Burst] {
        assert_eq!(missing(&sampler, key, id).fault, NoValue::NoQuota);
    }
}

#[test]
fn each_file_missing_or_cut_at_every_byte_gives_no_false_zero() {
    let files: [(&str, &str); 4] = [
        ("cgroup/cpu.max", "200000 100000\n"),
        (
            "cgroup/cpu.stat",
            "usage_usec 2900000\nuser_usec 2600000\nsystem_usec 300000\n",
        ),
        ("cgroup/cpuset.cpus.effective", "0-1,4\n"),
        (
            "cgroup/cpu.pressure",
            "some avg10=0.00 total=300000\nfull avg10=0.00 total=200000\n",
        ),
    ];
    for (name, content) in files {
        for end in 0..=content.len() {
            let tree = container("200000 100000\n");
            tree.write(&[
                ("cgroup/cpuset.cpus.effective", "0-1,4\n"),
                (
                    "cgroup/cpu.pressure",
                    "some total=100000\nfull total=100000\n",
                ),
            ]);
            let (mut sampler, key) = tree.watching("/");
            tree.write(&files);
            tree.write(&[(name, content.get(..end).unwrap())]);
            if end == 0 {
                fs::remove_file(tree.path(name)).unwrap();
            }
            sampler.sample(2 * SECOND_NS);
            for (id, reading) in sampler.group(key).unwrap().readings().iter() {
                assert_ne!(
                    reading.value(),
                    Some(0.0),
                    "{} with {name} cut at {end}",
                    id.name()
                );
            }
        }
    }
}

#[test]
fn numbers_at_the_end_of_their_range_are_no_values() {
    let max = u64::MAX;
    let tree = container(&format!("{max} {max}\n"));
    tree.write(&[(
        "cgroup/cpu.stat",
        &format!("usage_usec {max}\nnr_periods {max}\n"),
    )]);
    let (mut sampler, key) = tree.watching("/");
    sampler.sample(2 * SECOND_NS);
    close(value(&sampler, key, SignalId::EffectiveCpus), 1.0);
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::Malformed("usage_usec")
    );
    assert_eq!(
        missing(&sampler, key, SignalId::Throttle).fault,
        NoValue::NoField("nr_throttled")
    );
}

#[test]
fn a_group_that_goes_is_dropped_and_comes_back_under_a_new_key() {
    let tree = container("max");
    tree.write(&[("cgroup/app/cpu.stat", "usage_usec 0\n")]);
    let (mut sampler, key) = tree.watching("/app");
    assert_eq!(sampler.watch_path(Path::new("/app")), Ok(key));
    fs::remove_dir_all(tree.path("cgroup/app")).unwrap();
    sampler.sample(2 * SECOND_NS);
    assert!(sampler.group(key).is_none());
    assert!(
        sampler
            .watch_path(Path::new("/app"))
            .unwrap_err()
            .fault
            .is_absent()
    );
    tree.write(&[("cgroup/app/cpu.stat", "usage_usec 9\n")]);
    let again = sampler.watch_path(Path::new("/app")).unwrap();
    assert_ne!(again, key);
    assert!(sampler.group(key).is_none());
    sampler.sample(3 * SECOND_NS);
    assert_eq!(
        missing(&sampler, again, SignalId::Cpu).fault,
        NoValue::FirstSample
    );
}

#[test]
fn a_group_that_is_made_anew_between_two_samples_is_another_one() {
    let tree = container("max");
    tree.write(&[("cgroup/app/cpu.stat", "usage_usec 0\n")]);
    let (mut sampler, key) = tree.watching("/app");
    fs::rename(tree.path("cgroup/app"), tree.path("cgroup/old")).unwrap();
    tree.write(&[("cgroup/app/cpu.stat", "usage_usec 0\n")]);
    sampler.sample(2 * SECOND_NS);
    assert!(sampler.group(key).is_none());
    let anew = sampler.watch_path(Path::new("/app")).unwrap();
    assert_ne!(anew, key);
}

#[test]
fn groups_that_fit_a_pattern_are_watched_as_they_come_and_go() {
    let tree = container("max");
    let app = |number: u32| format!("cgroup/pods/app-{number}/cpu.stat");
    tree.write(&[
        (&app(1), "usage_usec 0\n"),
        ("cgroup/pods/db/cpu.stat", "usage_usec 0\n"),
    ]);
    let mut sampler = tree.sampler();
    let pattern = sampler.watch_pattern(GroupPattern::new("/pods/app-*").unwrap());
    let mut paths_at = |second: u64| {
        sampler.sample(second * SECOND_NS);
        let mut paths: Vec<_> = sampler
            .groups()
            .map(|(_, group)| group.path().to_owned())
            .collect();
        assert!(
            sampler
                .groups()
                .all(|(_key, group)| group.pattern() == Some(pattern))
        );
        assert_eq!(sampler.left_out(), 0);
        paths.sort();
        paths
    };
    assert_eq!(paths_at(1), [Path::new("/pods/app-1")]);
    tree.write(&[(&app(2), "usage_usec 0\n")]);
    assert_eq!(
        paths_at(2),
        [Path::new("/pods/app-1"), Path::new("/pods/app-2")]
    );
    fs::remove_dir_all(tree.path("cgroup/pods/app-1")).unwrap();
    assert_eq!(paths_at(3), [Path::new("/pods/app-2")]);
}
