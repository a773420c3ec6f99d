//! Waits of real tasks: against the kernel's own account, at rest, under a quota, beside a neighbour.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tidegate_abi::signal::SignalId;
use tidegate_agent::signal::{Neighbour, WatchedGroup};
use tidegate_segment::clock::monotonic_ns;
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::skip;

use crate::watching::Watching;

const SECONDS: Duration = Duration::from_secs(30);

/// A command on one CPU.
fn on_cpu(cpu: u32, script: &str) -> Option<Command> {
    let mut command = skip::tool("taskset", "--version")?;
    command.args(["-c", &cpu.to_string(), "sh", "-c", script]);
    Some(command)
}

/// Threads of a group of one process and its children, which stay on one CPU.
fn busy(name: &str, cpu: u32, loops: usize) -> Option<ConfinedProcess> {
    // Not before it is in its group: what it starts would be outside.
    let joined = "until grep -q cpuacct:/tidegate-test /proc/$$/cgroup; do :; done; ";
    let script = joined.to_owned() + &"while :; do :; done & ".repeat(loops) + "wait";
    ConfinedProcess::start(name, &mut on_cpu(cpu, &script)?)
}

/// Time that all tasks of a group have waited, ns, and how often they ran, as the kernel sums it.
fn schedstat(group: &ConfinedProcess) -> (u64, u64) {
    let tasks = format!("/sys/fs/cgroup/cpu{}/tasks", group.cgroup);
    let tasks = fs::read_to_string(tasks).unwrap_or_default();
    let mut sums = (0, 0);
    for task in tasks.lines() {
        let text = fs::read_to_string(format!("/proc/{task}/schedstat")).unwrap_or_default();
        let mut numbers = text
            .split_whitespace()
            .map(|number| number.parse().unwrap_or(0));
        let (_ran, waited, turns) = (numbers.next(), numbers.next(), numbers.next());
        sums.0 += waited.unwrap_or(0);
        sums.1 += turns.unwrap_or(0);
    }
    sums
}

#[expect(clippy::cast_precision_loss, reason = "a mean of milliseconds")]
fn mean_s((waited_ns, turns): (u64, u64)) -> f64 {
    waited_ns as f64 / turns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a test")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[test]
fn alone_two_loops_on_one_cpu_wait_as_long_as_the_kernel_says() {
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    let Some(group) = busy("waits", 0, 2) else {
        return;
    };
    // Other work of the machine must not come between the two.
    group.outweigh();
    let key = watching.watch(group.pid());
    let mut before = schedstat(&group);
    let mut told = Vec::new();
    let mut last = None;
    let agrees = watching.run(SECONDS, |watching| {
        let p99 = watching.value(key, SignalId::RunqueueWaitP99);
        if p99.is_none() || p99 == last {
            return false;
        }
        last = p99;
        let now = schedstat(&group);
        let mean = mean_s((now.0 - before.0, now.1 - before.1));
        before = now;
        let p99 = p99.unwrap_or(0.0);
        told.push((mean, p99));
        told.len() > 1 && p99 > mean / 2.0 && p99 < mean * 2.0
    });
    assert!(agrees, "mean by schedstat and p99 by programs, s: {told:?}");
    // Two that want all of one CPU: at each moment one of them waits.
    let waiting = watching.value(key, SignalId::RunqueueWait).unwrap_or(0.0);
    assert!((0.5..=2.0).contains(&waiting), "{waiting} tasks wait");
    let share = watching
        .value(key, SignalId::RunqueueWaitShare)
        .unwrap_or(0.0);
    assert!((0.3..=0.8).contains(&share), "{share} of the time");
}

#[test]
fn alone_waits_that_begin_with_a_wake_up_are_as_long_as_the_kernel_says() {
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    // Two that pass a line to and fro: each waits from its wake-up until the other sleeps, some microseconds.
    let passes = "dir=$(mktemp -d); mkfifo $dir/to $dir/fro; exec 3<>$dir/to 4<>$dir/fro; rm -r $dir; \
                  until grep -q cpuacct:/tidegate-test /proc/$$/cgroup; do :; done; \
                  while read line <&3; do echo $line >&4; done & \
                  while echo line >&3; do read line <&4; done";
    let Some(mut command) = on_cpu(0, passes) else {
        return;
    };
    let Some(group) = ConfinedProcess::start("passes", &mut command) else {
        return;
    };
    group.outweigh();
    let key = watching.watch(group.pid());
    let mut told = Vec::new();
    let agrees = watching.run(SECONDS, |watching| {
        let Some(waiting) = watching.value(key, SignalId::RunqueueWait) else {
            return false;
        };
        told.push((monotonic_ns(), schedstat(&group).0, waiting));
        let [(begin_ns, before_ns, _), .., (end_ns, after_ns, _)] = told[..] else {
            return false;
        };
        if told.len() < 20 {
            return false;
        }
        let by_kernel = seconds(after_ns - before_ns) / seconds(end_ns - begin_ns);
        let by_programs = told.iter().map(|(_, _, waiting)| waiting).sum::<f64>() / 20.0;
        told.remove(0);
        // They begin at once with the wake-up, the kernel a little later.
        by_kernel > 0.02 && by_programs > by_kernel / 2.0 && by_programs < by_kernel * 4.0
    });
    assert!(
        agrees,
        "ns, waited by schedstat, tasks by programs: {told:?}"
    );
}

#[test]
fn a_group_that_sleeps_reads_near_zero() {
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    let Some(group) = ConfinedProcess::start("sleeps", Command::new("sleep").arg("600")) else {
        return;
    };
    let key = watching.watch(group.pid());
    let seen = watching.run(Duration::from_secs(3), |watching| {
        watching
            .value(key, SignalId::RunqueueWait)
            .is_some_and(|waiting| waiting > 0.01)
    });
    assert!(!seen, "{:?}", watching.readings(key));
    assert_eq!(watching.value(key, SignalId::PreemptedBy), Some(0.0));
}

#[test]
fn alone_tasks_that_change_their_group_count_in_the_new_one() {
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    let to = ConfinedProcess::start("to", Command::new("sleep").arg("600"));
    let (Some(from), Some(to)) = (busy("from", 0, 2), to) else {
        return;
    };
    let [from_key, to_key] = [from.pid(), to.pid()].map(|pid| watching.watch(pid));
    let waiting = |watching: &Watching, key| {
        let waiting = watching.value(key, SignalId::RunqueueWait);
        waiting.unwrap_or(0.0)
    };
    let begun = watching.run(SECONDS, |watching| waiting(watching, from_key) > 0.5);
    assert!(begun, "{:?}", watching.readings(from_key));
    to.take_over(&from);
    let moved = watching.run(SECONDS, |watching| {
        waiting(watching, to_key) > 0.5 && waiting(watching, from_key) < 0.01
    });
    assert!(
        moved,
        "from: {:?}, to: {:?}",
        watching.readings(from_key),
        watching.readings(to_key)
    );
}

#[test]
fn alone_a_group_under_a_quota_is_told_apart_from_one_beside_a_neighbour() {
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    let groups = (
        busy("quota", 0, 1),
        busy("beside", 1, 1),
        busy("neighbour", 1, 1),
    );
    let (Some(quota), Some(beside), Some(neighbour)) = groups else {
        return;
    };
    quota.limit(20_000);
    beside.outweigh();
    neighbour.outweigh();
    let quota = watching.watch(quota.pid());
    let beside = watching.watch(beside.pid());
    let neighbour = watching.watch(neighbour.pid());
    let mut seen = Vec::new();
    let is_told = watching.run(SECONDS, |watching| {
        let value = |key, id| watching.value(key, id);
        let throttled = value(quota, SignalId::Throttle).unwrap_or(0.0);
        let taken = [quota, beside].map(|key| value(key, SignalId::PreemptedBy).unwrap_or(0.0));
        let by = watching
            .sampler
            .group(beside)
            .and_then(WatchedGroup::neighbour);
        let by = by.map(Neighbour::slot);
        seen.push((throttled, taken, by));
        throttled > 0.5
            && value(beside, SignalId::Throttle).is_none()
            && taken[1] > 10.0
            && taken[0] < taken[1]
            && by.is_some()
            && by == neighbour.kernel_slot()
    });
    let last = seen.last();
    assert!(
        is_told,
        "throttled, preempted a second, by: {last:?}, {neighbour:?} expected"
    );
}
