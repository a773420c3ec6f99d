//! What is said of patterns that no group fits.

use super::fixture::{SECOND_NS, Tree};
use super::search::{GroupMatches, NoGroup};
use crate::procfs::GroupPattern;

fn found(tree: &Tree, pattern: &str) -> Option<GroupMatches> {
    let mut sampler = tree.sampler();
    let key = sampler.watch_pattern(GroupPattern::new(pattern).unwrap());
    assert_eq!(sampler.found(key), None, "before the first search");
    sampler.sample(SECOND_NS);
    sampler.found(key)
}

/// cgroup v1 as systemd has it: a unit without CPU settings is in its own hierarchy alone.
fn v1() -> Tree {
    let mount = |point: &str, options: &str| {
        format!("1 0 0:1 / /sys/fs/cgroup/{point} rw - cgroup cgroup rw,{options}\n")
    };
    let mounts = mount("cpu", "cpu,cpuacct") + &mount("systemd", "xattr,name=systemd");
    Tree::new(&[
        ("proc/self/mountinfo", &mounts),
        ("cgroup/cpu/cpu.shares", "1024\n"),
        ("cgroup/cpu/system.slice/web.service/cpu.shares", "1024\n"),
        (
            "cgroup/cpu/a.slice/a-b.slice/x.service/cpu.shares",
            "1024\n",
        ),
        (
            "cgroup/systemd/system.slice/plain.service/cgroup.procs",
            "7\n",
        ),
        (
            "cgroup/systemd/system.slice/web.service/cgroup.procs",
            "8\n",
        ),
    ])
}

#[test]
fn field_s12_a_pattern_without_a_group_says_why() {
    for (pattern, right) in [
        ("/system.slice/web.service", Ok(1)),
        ("/system.slice/*.service", Ok(1)),
        ("/system.slice/wbe.service", Err(NoGroup::Nowhere)),
        ("/a-b.slice/x.service", Err(NoGroup::SliceNotNested)),
        ("/a-b.slice/y.service", Err(NoGroup::Nowhere)),
    ] {
        assert_eq!(found(&v1(), pattern), Some(right), "{pattern}");
    }
}

#[test]
fn field_s19_a_unit_without_a_group_of_the_cpu_controller_is_told_what_makes_one() {
    let found = found(&v1(), "/system.slice/plain.service");
    assert_eq!(found, Some(Err(NoGroup::NotOfCpu)));
    let remedy = NoGroup::NotOfCpu.remedy();
    assert!(remedy.contains("CPUAccounting=yes"), "{remedy}");
}

#[test]
fn field_s12_without_a_cpu_hierarchy_the_mount_is_what_lacks() {
    let none = Tree::new(&[("proc/self/mountinfo", "")]);
    assert_eq!(found(&none, "/a"), Some(Err(NoGroup::OutOfSight)));
}

#[test]
fn field_s12_a_group_that_comes_and_goes_is_followed() {
    let tree = v1();
    let mut sampler = tree.sampler();
    let key = sampler.watch_pattern(GroupPattern::new("/late").unwrap());
    sampler.sample(SECOND_NS);
    assert_eq!(sampler.found(key), Some(Err(NoGroup::Nowhere)));
    tree.write(&[("cgroup/cpu/late/cpu.shares", "1024\n")]);
    sampler.sample(2 * SECOND_NS);
    assert_eq!(sampler.found(key), Some(Ok(1)));
    std::fs::remove_dir_all(tree.path("cgroup/cpu/late")).unwrap();
    sampler.sample(3 * SECOND_NS);
    assert_eq!(sampler.found(key), Some(Err(NoGroup::Nowhere)));
}
