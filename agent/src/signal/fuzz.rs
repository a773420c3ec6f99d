//! The parsers as the fuzzer sees them.

use super::parse::{
    cpu_set, field, hsperfdata, load_average, membership, mount_info, pressure, proc_stat, quota,
    sched_stat, sole_number, task_stat,
};
use super::truth::Version;

/// Reads `content` as the file of this number, modulo how many there are.
pub fn parse(which: u8, content: &[u8]) {
    match which % 14 {
        0 => drop(proc_stat::parse(content)),
        1 => drop(load_average::parse(content)),
        2 => drop(pressure::parse(content)),
        3 => drop(sched_stat::parse_host_wait_ns(content)),
        4 => drop(sched_stat::parse(content)),
        5 => drop(task_stat::parse(content)),
        6 => drop(membership::parse(content)),
        7 => drop(mount_info::parse(content)),
        8 => check_quota(content),
        9 => drop(cpu_set::parse(content)),
        10 => drop(hsperfdata::parse(content)),
        11 => check_counters(content, Version::V1),
        12 => check_counters(content, Version::V2),
        _ => drop((field(content, "nr_periods"), sole_number(content, "one"))),
    }
}

fn check_quota(content: &[u8]) {
    let told = [
        quota::parse_max(content),
        quota::parse_cfs_quota(b"1").and_then(|run| match run {
            Some(run_us) => quota::join_cfs_period(run_us, content).map(Some),
            None => Ok(None),
        }),
    ];
    for quota in told.into_iter().flatten().flatten() {
        assert!(quota.cpus() > 0.0 && quota.cpus().is_finite());
    }
    drop(quota::parse_cfs_quota(content));
}

fn check_counters(content: &[u8], version: Version) {
    let truth = version.truth();
    for counter in [truth.usage, truth.user, truth.periods, truth.throttled_time] {
        drop(counter.read(content));
    }
}
