//! Hosts as reports and machines have shown them, read through the real readers: `tests/signals/`.
//!
//! Each folder is a host. `tree` holds its files, each after a line `== PATH`; `after` those that are others a second
//! later. `host.toml` names where it is from, and what is right to tell of it.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::TempDir;
use tidegate_abi::signal::SignalId;
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::{Limiter, Readings, Sampler};

const SECOND_NS: u64 = 1_000_000_000;

/// What is right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Right {
    /// The public report or the machine that the tree was shaped after.
    source: String,
    #[serde(default)]
    host: Told,
    #[serde(default, rename = "group")]
    groups: Vec<Group>,
}

/// Signals by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    values: BTreeMap<String, f64>,
    /// Each with the kind of reason.
    missing: BTreeMap<String, String>,
}

/// A group: the agent's own one, that of a process, or one at a path.
#[derive(Debug, Deserialize)]
struct Group {
    #[serde(default)]
    own: bool,
    pid: Option<u32>,
    path: Option<PathBuf>,
    limiter: Option<String>,
    /// Kind of reason why it cannot be watched.
    refused: Option<String>,
    #[serde(flatten)]
    told: Told,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("signals")
}

/// Writes the files of a text below a folder.
fn unfold(text: &str, root: &Path) {
    for part in text.split("== ").filter(|part| !part.is_empty()) {
        let (path, content) = part.split_once('\n').expect("a path ends its line");
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("makes folders");
        fs::write(path, content).expect("writes a file");
    }
}

fn signal(name: &str) -> SignalId {
    let known = SignalId::ALL.iter().find(|id| id.name() == name);
    *known.unwrap_or_else(|| panic!("no signal is called {name}"))
}

fn check(what: &str, readings: &Readings, told: &Told) {
    for (name, right) in &told.values {
        match readings.get(signal(name)).get() {
            Ok(value) => assert!(
                (value - right).abs() < 1e-6,
                "{what}: {name} is {value}, right is {right}"
            ),
            Err(missing) => panic!("{what}: {name} is not measured: {missing}; right is {right}"),
        }
    }
    for (name, cause) in &told.missing {
        match readings.get(signal(name)).get() {
            Ok(value) => panic!("{what}: {name} is {value}, right is none: {cause}"),
            Err(missing) => assert_eq!(missing.fault.cause(), cause, "{what}: {name}: {missing}"),
        }
    }
}

fn limiter(limiter: Limiter<'_>) -> &'static str {
    match limiter {
        Limiter::Quota(_path) => "quota",
        Limiter::CpuSet => "cpuset",
        Limiter::Online => "online",
    }
}

fn check_host(folder: &Path) {
    let read = |name: &str| fs::read_to_string(folder.join(name));
    let right = read("host.toml").expect("each host says what is right");
    let right: Right = toml::from_str(&right).unwrap_or_else(|fault| panic!("{folder:?}: {fault}"));
    assert!(!right.source.is_empty(), "{folder:?} names its source");
    let root = TempDir::new().expect("a temporary folder");
    let roots = Roots {
        proc: root.path().join("proc"),
        cgroup: root.path().join("sys/fs/cgroup"),
    };
    fs::create_dir_all(&roots.proc).expect("makes a folder");
    fs::create_dir_all(&roots.cgroup).expect("makes a folder");
    unfold(&read("tree").expect("each host has files"), root.path());
    let mut sampler = Sampler::new(roots);
    let mut keys = Vec::new();
    for group in &right.groups {
        let what = format!("{}: {:?} {:?}", folder.display(), group.pid, group.path);
        let key = match (group.own, group.pid, &group.path) {
            (true, ..) => sampler.watch_own(),
            (_, Some(pid), _) => sampler.watch_process(pid),
            (_, None, Some(path)) => sampler.watch_path(path),
            (_, None, None) => panic!("{what}: which group?"),
        };
        match (key, &group.refused) {
            (Ok(key), None) => keys.push((what, key, group)),
            (Err(missing), Some(cause)) => {
                assert_eq!(missing.fault.cause(), cause, "{what}: {missing}");
            }
            (told, refused) => panic!("{what}: {told:?}, right is {refused:?}"),
        }
    }
    sampler.sample(SECOND_NS);
    if let Ok(after) = read("after") {
        unfold(&after, root.path());
    }
    sampler.sample(2 * SECOND_NS);
    check(&folder.display().to_string(), sampler.host(), &right.host);
    for (what, key, right) in keys {
        let group = sampler.group(key).expect("it is there");
        if let Some(path) = &right.path {
            assert_eq!(group.path(), path, "{what}");
        }
        if let Some(right) = &right.limiter {
            assert_eq!(limiter(group.limiter()), right, "{what}");
        }
        check(&what, group.readings(), &right.told);
    }
}

fn check_each(names: &[&str]) {
    for name in names {
        check_host(&folder().join(name));
    }
}

#[test]
fn every_host_is_told_as_is_right() {
    let hosts = fs::read_dir(folder()).expect("the hosts are there");
    let mut count = 0;
    for host in hosts {
        let host = host.expect("reads a name").path();
        if host.is_dir() {
            check_host(&host);
            count += 1;
        }
    }
    assert!(count >= 24, "{count} hosts");
}

#[test]
fn field_s1_groups_of_several_hierarchies_are_one_or_not_measured() {
    check_each(&["v1-apart", "hybrid-comounted"]);
}

#[test]
fn field_s4_the_list_of_the_group_itself_counts() {
    check_each(&["cpuset-partition", "lxc-lxcfs", "misread-limit"]);
}

#[test]
fn field_s5_files_without_their_prefix_are_read() {
    check_each(&["v1-noprefix-cpuset", "v1-type-cpuset"]);
}

#[test]
fn field_s7_s8_counts_that_cannot_be_are_not_measured() {
    check_each(&["procs-running-wrapped", "gvisor"]);
}

#[test]
fn field_s10_what_is_out_of_sight_is_not_spoken_of() {
    check_each(&[
        "namespace-above-out-of-sight",
        "no-cgroup-mount",
        "docker-private-namespace",
    ]);
}

#[test]
fn field_s17_a_namespace_below_the_mount_is_resolved() {
    check_each(&["namespace-with-host-mount"]);
}
