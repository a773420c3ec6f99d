//! Every file of a machine, each failing with every error that the kernel has for it: what it tells is then not
//! measured, for that reason, and the rest is as before.

use tidegate_abi::signal::SignalId;

use super::fixture::{SECOND_NS, Tree};
use super::reading::Readings;
use crate::procfs::NoValue;

/// As of a pressure file with PSI off, of a group that was removed, of a failing disk, and of a sandbox.
const ERRORS: [i32; 4] = [libc::EOPNOTSUPP, libc::ENODEV, libc::EIO, libc::EACCES];

/// A file with its content at the first and at the second sample.
type File = (&'static str, &'static str, &'static str);

const HOST: [File; 8] = [
    (
        "proc/stat",
        "cpu  10 0 0 90 0 0 0 0\ncpu0 1\nctxt 5\nprocs_running 2\nprocs_blocked 0\n",
        "cpu  60 0 0 140 0 0 0 0\ncpu0 1\nctxt 9\nprocs_running 3\nprocs_blocked 1\n",
    ),
    (
        "proc/loadavg",
        "0.50 0.40 0.30 1/80 9\n",
        "0.60 0.40 0.30 1/90 9\n",
    ),
    (
        "proc/schedstat",
        "version 17\ncpu0 0 0 0 0 0 0 0 5 0\n",
        "version 17\ncpu0 0 0 0 0 0 0 0 500005 0\n",
    ),
    ("proc/pressure/cpu", "some total=5\n", "some total=500005\n"),
    (
        "proc/pressure/memory",
        "some total=5\nfull total=5\n",
        "some total=500005\nfull total=50005\n",
    ),
    (
        "proc/pressure/io",
        "some total=5\nfull total=5\n",
        "some total=500005\nfull total=50005\n",
    ),
    (
        "proc/10/task/10/stat",
        "10 (java) S 1 1 1 0 -1 4194304\n",
        "10 (java) R 1 1 1 0 -1 4194304\n",
    ),
    (
        "proc/10/task/10/schedstat",
        "5 5 5\n",
        "500000005 200000005 25\n",
    ),
];

const V2: [File; 7] = [
    ("cgroup/app/cpu.max", "50000 100000\n", "50000 100000\n"),
    (
        "cgroup/app/cpu.stat",
        "usage_usec 5\nuser_usec 5\nsystem_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\n",
        "usage_usec 400005\nuser_usec 300005\nsystem_usec 100005\nnr_periods 10\nnr_throttled 5\nthrottled_usec 90000\n\
         nr_bursts 1\n",
    ),
    (
        "cgroup/app/cpu.pressure",
        "some total=5\nfull total=5\n",
        "some total=500005\nfull total=50005\n",
    ),
    (
        "cgroup/app/memory.pressure",
        "some total=5\nfull total=5\n",
        "some total=500005\nfull total=50005\n",
    ),
    (
        "cgroup/app/io.pressure",
        "some total=5\nfull total=5\n",
        "some total=500005\nfull total=50005\n",
    ),
    ("cgroup/app/cpuset.cpus.effective", "0\n", "0\n"),
    ("cgroup/app/cgroup.procs", "10\n", "10\n"),
];

const V1: [File; 10] = [
    ("cgroup/cpu/app/cpu.cfs_quota_us", "50000\n", "50000\n"),
    ("cgroup/cpu/app/cpu.cfs_period_us", "100000\n", "100000\n"),
    (
        "cgroup/cpu/app/cpu.stat",
        "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        "nr_periods 10\nnr_throttled 5\nthrottled_time 90000000\n",
    ),
    ("cgroup/cpuacct/app/cpuacct.usage", "5\n", "400000005\n"),
    (
        "cgroup/cpuacct/app/cpuacct.usage_user",
        "5\n",
        "300000005\n",
    ),
    ("cgroup/cpuacct/app/cpuacct.usage_sys", "5\n", "100000005\n"),
    ("cgroup/cpuset/app/cpuset.effective_cpus", "0\n", "0\n"),
    ("cgroup/cpu/app/cgroup.procs", "10\n", "10\n"),
    ("cgroup/cpuacct/app/cgroup.procs", "10\n", "10\n"),
    ("cgroup/cpuset/app/cgroup.procs", "10\n", "10\n"),
];

/// What the second of two samples reads of the host and of the group, while one file fails from a sample on.
fn measured(files: &[File], failing: Option<(&str, i32, u64)>) -> [Readings; 2] {
    let tree = Tree::new(&[]);
    tree.write(
        &files
            .iter()
            .map(|file| (file.0, file.1))
            .collect::<Vec<_>>(),
    );
    let mut sampler = tree.sampler();
    let key = sampler.watch_path("/app".as_ref()).unwrap();
    for sample in 1..=2 {
        if let Some((name, errno, _from)) = failing.filter(|(_, _, from)| *from == sample) {
            sampler.refuse(tree.path(name), errno);
        }
        sampler.sample(sample * SECOND_NS);
        tree.write(
            &files
                .iter()
                .map(|file| (file.0, file.2))
                .collect::<Vec<_>>(),
        );
    }
    let group = sampler.group(key).expect("its directory is there");
    [sampler.host().clone(), group.readings().clone()]
}

/// Fails each file in turn. A signal that was measured either is as before, or says that the file failed; one that
/// was not is not measured now either.
fn fail_each(files: &[File]) {
    let whole = measured(files, None);
    for (name, ..) in files {
        for (errno, from) in ERRORS
            .into_iter()
            .flat_map(|errno| [(errno, 1), (errno, 2)])
        {
            let seen = measured(files, Some((name, errno, from)));
            let mut told = 0;
            for (whole, seen) in whole.iter().zip(&seen) {
                for (id, seen) in seen.iter().filter(|(id, seen)| *seen != whole.get(*id)) {
                    if whole.value(id).is_none() {
                        assert_eq!(seen.value(), None, "{name}: {id:?}");
                        continue;
                    }
                    let fault = seen.get().map_err(|missing| missing.fault);
                    assert_eq!(fault, Err(NoValue::Os(errno)), "{name}: {id:?}");
                    told += 1;
                }
            }
            assert!(told > 0, "nothing says that {name} fails with {errno}");
        }
    }
}

#[test]
fn a_file_of_the_host_or_of_a_v2_group_that_fails_is_the_reason_of_what_it_tells() {
    let files = [HOST.as_slice(), V2.as_slice()].concat();
    let [host, group] = measured(&files, None);
    for id in [SignalId::Cpu, SignalId::RunqueueWait, SignalId::PsiIoFull] {
        assert!(
            host.value(id).is_some() && group.value(id).is_some(),
            "{id:?}"
        );
    }
    fail_each(&files);
}

#[test]
fn a_file_of_a_v1_group_that_fails_is_the_reason_of_what_it_tells() {
    let files = [HOST.as_slice(), V1.as_slice()].concat();
    let [_host, group] = measured(&files, None);
    for id in [SignalId::Cpu, SignalId::Throttle, SignalId::CpuUser] {
        assert!(group.value(id).is_some(), "{id:?}: {:?}", group.get(id));
    }
    fail_each(&files);
}
