//! Layouts as kernels and container runtimes make them: v1 apart and joint, hybrid, namespaces.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use tidegate_abi::signal::SignalId;

use super::fixture::{SECOND_NS, Tree, close, missing, value};
use super::sampler::Sampler;
use crate::procfs::NoValue;
use crate::procfs::readable;

const STAT: (&str, &str) = ("proc/stat", "cpu  1 0 0 9\ncpu0 1 0 0 9\ncpu1 1 0 0 9\n");

fn mount(root: &str, point: &str, options: &str) -> String {
    let kind = if options.is_empty() {
        "cgroup2"
    } else {
        "cgroup"
    };
    format!("1 0 0:1 {root} /sys/fs/cgroup{point} rw,relatime - {kind} {kind} rw,{options}\n")
}

/// cpu, cpuacct and cpuset apart, and a cgroup2 without the cpu controller beside them.
fn hybrid_apart() -> Tree {
    let mounts = [
        mount("/", "/cpu", "cpu"),
        mount("/", "/cpuacct", "cpuacct"),
        mount("/", "/cpuset", "cpuset"),
        mount("/", "/unified", ""),
    ];
    Tree::new(&[
        STAT,
        ("proc/self/mountinfo", &mounts.concat()),
        (
            "proc/77/cgroup",
            "3:cpuset:/a\n2:cpuacct:/b\n1:cpu:/c\n0::/\n",
        ),
        ("cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("cgroup/cpu/c/cpu.cfs_quota_us", "20000\n"),
        ("cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
        (
            "cgroup/cpu/c/cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\n",
        ),
        ("cgroup/cpuacct/b/cpuacct.usage", "0\n"),
        ("cgroup/cpuset/a/cpuset.effective_cpus", "1\n"),
        ("cgroup/unified/cpu.stat", "usage_usec 5\n"),
        ("cgroup/unified/cpu.pressure", "some total=1\n"),
    ])
}

/// Process 77 is in the group of each hierarchy.
fn with_member(tree: &Tree) {
    let lists = ["cpu/c", "cpuacct/b", "cpuset/a"].map(|dir| format!("cgroup/{dir}/cgroup.procs"));
    for list in &lists {
        tree.write(&[(list, "77\n")]);
    }
}

#[test]
fn each_controller_is_read_at_its_own_path() {
    let tree = hybrid_apart();
    with_member(&tree);
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(77).unwrap();
    sampler.sample(SECOND_NS);
    tree.write(&[
        ("cgroup/cpuacct/b/cpuacct.usage", "190000000\n"),
        (
            "cgroup/cpu/c/cpu.stat",
            "nr_periods 33\nnr_throttled 31\nthrottled_time 1704000000\nnr_bursts 3\n",
        ),
    ]);
    sampler.sample(2 * SECOND_NS);
    assert_eq!(sampler.group(key).unwrap().path(), Path::new("/c"));
    close(value(&sampler, key, SignalId::EffectiveCpus), 0.2);
    close(value(&sampler, key, SignalId::Cpu), 0.95);
    close(value(&sampler, key, SignalId::Throttle), 31.0 / 33.0);
    close(
        value(&sampler, key, SignalId::ThrottledTime),
        1704.0 / (1704.0 + 660.0),
    );
    close(value(&sampler, key, SignalId::Burst), 3.0 / 33.0);
    let user = missing(&sampler, key, SignalId::CpuUser);
    assert_eq!(
        (user.source, user.fault.is_absent()),
        ("cpuacct.usage_user", true)
    );
}

#[test]
fn pressure_of_all_processes_is_not_told_as_the_groups_own() {
    let tree = hybrid_apart();
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(77).unwrap();
    sampler.sample(SECOND_NS);
    assert_eq!(
        missing(&sampler, key, SignalId::PsiCpu).fault,
        NoValue::NotSetApart
    );
}

#[test]
fn a_path_alone_finds_the_other_hierarchies_by_a_member() {
    let tree = hybrid_apart();
    tree.write(&[("cgroup/cpu/c/cgroup.procs", "77\n78\n")]);
    let mut sampler = tree.sampler();
    let by_path = sampler.watch_path(Path::new("/c")).unwrap();
    assert_eq!(sampler.watch_process(77), Ok(by_path));
}

#[test]
fn a_path_without_members_is_looked_for_under_the_same_name() {
    let tree = hybrid_apart();
    tree.write(&[("cgroup/cpu/c/cgroup.procs", "")]);
    let (sampler, key) = tree.watching("/c");
    let used = missing(&sampler, key, SignalId::UsedCpus);
    assert_eq!((used.source, used.fault), ("cpuacct", NoValue::OutOfSight));
    close(value(&sampler, key, SignalId::EffectiveCpus), 0.2);
}

#[test]
fn joint_controllers_and_the_same_group_in_cgroup2() {
    for unified in [false, true] {
        let mut mounts =
            mount("/", "/cpu,cpuacct", "cpu,cpuacct") + &mount("/", "/cpuset", "cpuset");
        let mut membership = "6:cpu,cpuacct:/s/burn.service\n11:cpuset:/\n".to_owned();
        if unified {
            mounts += &mount("/", "/unified", "");
            membership += "0::/s/burn.service\n";
        }
        let tree = Tree::new(&[
            STAT,
            ("proc/self/mountinfo", &mounts),
            ("proc/5/cgroup", &membership),
            (
                "cgroup/cpu,cpuacct/s/burn.service/cpu.cfs_quota_us",
                "20000\n",
            ),
            (
                "cgroup/cpu,cpuacct/s/burn.service/cpu.cfs_period_us",
                "100000\n",
            ),
            (
                "cgroup/cpu,cpuacct/s/burn.service/cpuacct.usage",
                "684633761\n",
            ),
            ("cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
            ("cgroup/cpu,cpuacct/s/burn.service/cgroup.procs", "5\n"),
            ("cgroup/unified/s/burn.service/cgroup.procs", "5\n"),
            (
                "cgroup/unified/s/burn.service/cpu.pressure",
                "some total=5\n",
            ),
        ]);
        let mut sampler = tree.sampler();
        let key = sampler.watch_process(5).unwrap();
        sampler.sample(SECOND_NS);
        tree.write(&[(
            "cgroup/cpu,cpuacct/s/burn.service/cpuacct.usage",
            "884633761\n",
        )]);
        sampler.sample(2 * SECOND_NS);
        close(value(&sampler, key, SignalId::Cpu), 1.0);
        let pressure = sampler
            .group(key)
            .unwrap()
            .readings()
            .value(SignalId::PsiCpu);
        assert_eq!(pressure, unified.then_some(0.0));
    }
}

#[test]
fn a_mount_that_shows_one_container_only_is_resolved() {
    let tree = Tree::new(&[
        STAT,
        ("proc/self/mountinfo", &mount("/docker/abc", "", "")),
        ("proc/self/cgroup", "0::/docker/abc/app\n"),
        ("proc/9/cgroup", "0::/docker/other\n"),
        ("proc/10/cgroup", "0::/../outside\n"),
        ("cgroup/cpu.max", "50000 100000\n"),
        ("cgroup/app/cpu.stat", "usage_usec 1\n"),
    ]);
    let mut sampler = tree.sampler();
    let own = sampler.watch_own().unwrap();
    sampler.sample(SECOND_NS);
    assert_eq!(sampler.group(own).unwrap().path(), Path::new("/app"));
    close(value(&sampler, own, SignalId::EffectiveCpus), 0.5);
    for pid in [9, 10] {
        assert_eq!(
            sampler.watch_process(pid).unwrap_err().fault,
            NoValue::OutOfSight
        );
    }
}

#[test]
fn without_mountinfo_the_usual_directories_are_taken() {
    let tree = hybrid_apart();
    with_member(&tree);
    std::fs::remove_file(tree.path("proc/self/mountinfo")).unwrap();
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(77).unwrap();
    sampler.sample(SECOND_NS);
    close(value(&sampler, key, SignalId::EffectiveCpus), 0.2);
}

#[test]
fn with_membership_hidden_the_own_group_is_the_top_of_the_mount() {
    let tree = Tree::new(&[STAT, ("cgroup/cpu.max", "50000 100000\n")]);
    let mut sampler = tree.sampler();
    let own = sampler.watch_own().unwrap();
    sampler.sample(SECOND_NS);
    close(value(&sampler, own, SignalId::EffectiveCpus), 0.5);
    assert!(sampler.watch_process(1).unwrap_err().fault.is_absent());
}

#[test]
fn a_controller_that_is_mounted_elsewhere_is_not_mounted_for_us() {
    let tree = Tree::new(&[
        STAT,
        ("proc/self/mountinfo", &mount("/", "/unified", "")),
        ("proc/5/cgroup", "1:cpu:/a\n0::/a\n"),
        ("cgroup/unified/a/cpu.max", "50000 100000\n"),
    ]);
    assert_eq!(
        tree.sampler().watch_process(5).unwrap_err().fault,
        NoValue::NotMounted
    );
}

#[test]
fn names_of_odd_bytes_stay_apart_and_print_nothing_odd() {
    let told = |name: &[u8]| readable(Path::new(OsStr::from_bytes(name)));
    assert_eq!(told(b"/a/\xff"), "/a/\\xff");
    assert_eq!(told(b"/a/\xfe"), "/a/\\xfe");
    assert_eq!(told(b"/\x1b[2J\t\""), "/\\x1b[2J\\x09\"");
    assert_eq!(told("/\u{85}ü\\x2d".as_bytes()), "/\\xc2\\x85ü\\x2d");
}

/// A v1 host with cpu and cpuacct apart, and the group `g` in both; process 5 is in these groups.
fn apart(cpu: &str, cpuacct: &str) -> Tree {
    let mounts = mount("/", "/cpu", "cpu") + &mount("/", "/cpuacct", "cpuacct");
    let tree = Tree::new(&[
        STAT,
        ("proc/self/mountinfo", &mounts),
        ("cgroup/cpu/cgroup.procs", ""),
        ("cgroup/cpu/release_agent", ""),
        ("cgroup/cpu/g/cpu.cfs_quota_us", "50000\n"),
        ("cgroup/cpu/g/cpu.cfs_period_us", "100000\n"),
        ("cgroup/cpuacct/release_agent", ""),
        ("cgroup/cpuacct/cpuacct.usage", "0\n"),
        ("cgroup/cpuacct/g/cpuacct.usage", "0\n"),
    ]);
    join(&tree, cpu, cpuacct);
    tree
}

fn join(tree: &Tree, cpu: &str, cpuacct: &str) {
    let list = |path: &str, of: &str| if path == of { "5\n" } else { "" };
    tree.write(&[
        (
            "proc/5/cgroup",
            &format!("2:cpuacct:{cpuacct}\n1:cpu:{cpu}\n"),
        ),
        ("cgroup/cpu/g/cgroup.procs", list(cpu, "/g")),
        ("cgroup/cpuacct/g/cgroup.procs", list(cpuacct, "/g")),
        ("cgroup/cpuacct/cgroup.procs", list(cpuacct, "/")),
    ]);
}

/// So much CPU time was used in the group, and in the whole machine.
fn used(tree: &Tree, group_ms: u64, all_ms: u64) {
    tree.write(&[
        (
            "cgroup/cpuacct/g/cpuacct.usage",
            &format!("{group_ms}000000\n"),
        ),
        ("cgroup/cpuacct/cpuacct.usage", &format!("{all_ms}000000\n")),
    ]);
}

#[test]
fn field_s1_a_group_is_measured_by_its_own_counters_or_not_at_all() {
    let tree = apart("/g", "/");
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(5).unwrap();
    for second in 1..4 {
        used(&tree, 0, second * 1400);
        sampler.sample(second * SECOND_NS);
        let used = missing(&sampler, key, SignalId::UsedCpus);
        assert!(
            matches!(used.fault, NoValue::OtherProcesses | NoValue::NotSampled),
            "{used}"
        );
    }
    // The process joins the second group as well.
    join(&tree, "/g", "/g");
    for second in 4..8 {
        used(&tree, second * 400, second * 1800);
        sampler.sample(second * SECOND_NS);
    }
    close(value(&sampler, key, SignalId::UsedCpus), 0.4);
    close(value(&sampler, key, SignalId::Cpu), 0.8);
    // And leaves it again.
    join(&tree, "/g", "/");
    for second in 8..12 {
        sampler.sample(second * SECOND_NS);
    }
    assert_eq!(
        missing(&sampler, key, SignalId::Cpu).fault,
        NoValue::OtherProcesses
    );
}

#[test]
fn field_s1_a_group_that_stays_as_it_is_is_looked_at_less_often_and_at_once_when_a_process_comes() {
    let settled = |sampler: &mut Sampler, tree: &Tree| {
        for second in 1..20 {
            used(tree, second * 400, second * 1800);
            sampler.sample(second * SECOND_NS);
        }
    };
    let fault_after = |sampler: &mut Sampler, key, seconds: u64| {
        for second in 20..20 + seconds {
            sampler.sample(second * SECOND_NS);
        }
        let used = sampler
            .group(key)
            .unwrap()
            .readings()
            .get(SignalId::UsedCpus);
        used.get().err().map(|missing| missing.fault)
    };
    // It leaves one of the two alone, and nothing else tells.
    let tree = apart("/g", "/g");
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(5).unwrap();
    settled(&mut sampler, &tree);
    join(&tree, "/g", "/");
    let left = fault_after(&mut sampler, key, 5);
    assert_eq!(left, Some(NoValue::OtherProcesses));
    // Another comes and is in one of them alone.
    let tree = apart("/g", "/g");
    let mut sampler = tree.sampler();
    let key = sampler.watch_process(5).unwrap();
    settled(&mut sampler, &tree);
    tree.write(&[
        ("proc/6/cgroup", "2:cpuacct:/\n1:cpu:/g\n"),
        ("cgroup/cpu/g/cgroup.procs", "5\n6\n"),
        ("cgroup/cpuacct/cgroup.procs", "6\n"),
    ]);
    let came = fault_after(&mut sampler, key, 2);
    assert_eq!(came, Some(NoValue::OtherProcesses));
}

#[test]
fn field_s18_a_group_that_was_empty_is_one_scope_when_its_first_process_comes() {
    let tree = apart("/", "/");
    std::fs::remove_dir_all(tree.path("cgroup/cpuacct/g")).unwrap();
    let mut sampler = tree.sampler();
    let configured = sampler.watch_path(Path::new("/g")).unwrap();
    sampler.sample(SECOND_NS);
    tree.write(&[("cgroup/cpuacct/h/cpuacct.usage", "0\n")]);
    tree.write(&[("cgroup/cpuacct/h/cgroup.procs", "5\n")]);
    tree.write(&[("cgroup/cpu/g/cgroup.procs", "5\n")]);
    tree.write(&[("proc/5/cgroup", "2:cpuacct:/h\n1:cpu:/g\n")]);
    assert_eq!(sampler.watch_process(5), Ok(configured));
    for second in 2..7 {
        let used = format!("{}00000000\n", 3 * second);
        tree.write(&[("cgroup/cpuacct/h/cpuacct.usage", &used)]);
        sampler.sample(second * SECOND_NS);
    }
    close(value(&sampler, configured, SignalId::UsedCpus), 0.3);
    assert_eq!(sampler.groups().count(), 1);
}
