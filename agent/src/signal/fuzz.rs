//! The parsers as the fuzzer sees them.

use std::hint::black_box;

use super::parse::{
    affinity, cpu_set, hsperfdata, load_average, pressure, proc_stat, quota, sched_stat, sock_diag,
    task_stat,
};
use super::processes::members;
use crate::procfs::Version;
use crate::procfs::parse::innermost_pid::innermost_pid;
use crate::procfs::parse::{field, membership, mount_info, sole_number};

/// One for each kind of file, in the order of the seeds' first byte.
const READERS: [fn(&[u8]); 18] = [
    |content| seen(proc_stat::parse(content)),
    |content| seen(load_average::parse(content)),
    |content| seen(pressure::parse(content)),
    |content| seen(sched_stat::parse_host_wait_ns(content)),
    |content| seen(sched_stat::parse(content)),
    |content| seen(task_stat::parse(content)),
    |content| seen(membership::parse(content)),
    |content| seen(mount_info::parse(content)),
    read_quota,
    |content| seen(cpu_set::parse(content)),
    |content| seen(hsperfdata::parse(content)),
    |content| read_counters(content, Version::V1),
    |content| read_counters(content, Version::V2),
    |content| seen((field(content, "nr_periods"), sole_number(content, "one"))),
    read_socket_diagnosis,
    |content| seen(innermost_pid(content)),
    |content| seen(members::pid(content)),
    |content| seen(affinity::parse(content)),
];

/// Keeps the compiler from leaving out what nobody looks at.
fn seen<T>(value: T) {
    let _value = black_box(value);
}

/// Reads `content` as the file of this number, modulo how many there are.
pub fn parse(which: u8, content: &[u8]) {
    let which = usize::from(which) % READERS.len();
    if let Some(read) = READERS.get(which) {
        read(content);
    }
}

fn read_quota(content: &[u8]) {
    let joined = quota::join_cfs_period(20_000, content).map(Some);
    for quota in [quota::parse_max(content), joined]
        .into_iter()
        .flatten()
        .flatten()
    {
        assert!(quota.cpus() > 0.0 && quota.cpus().is_finite(), "{quota:?}");
    }
    seen(quota::parse_cfs_quota(content));
}

fn read_counters(content: &[u8], version: Version) {
    let truth = version.truth();
    let counters = [
        truth.usage,
        truth.user,
        truth.system,
        truth.periods,
        truth.throttled,
        truth.throttled_time,
        truth.bursts,
    ];
    for counter in counters {
        seen(counter.read(content));
    }
}

/// The first four bytes are the number of the question.
fn read_socket_diagnosis(content: &[u8]) {
    let Some((sequence, packet)) = content.split_first_chunk() else {
        return;
    };
    let messages = sock_diag::messages(packet, u32::from_ne_bytes(*sequence));
    // The smallest message is a header.
    assert!(
        messages.count() <= packet.len() / 16,
        "a message is read twice"
    );
}
