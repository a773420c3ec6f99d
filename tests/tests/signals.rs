//! Signals of this machine's own kernel.

#![cfg(test)]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tidegate_abi::signal::SignalId;
use tidegate_agent::signal::{Fault, GroupKey, GroupPattern, Limiter, Roots, Sampler};
use tidegate_tests::skip;

const TICK: Duration = Duration::from_millis(100);
/// Thirty quota periods: long enough that one period more or less is lost in the noise.
const SPAN: Duration = Duration::from_secs(3);

/// A v1 group with a fifth of a CPU and a busy loop in it; gone when dropped.
struct BusyGroup {
    dirs: Vec<PathBuf>,
    busy: Child,
}

impl BusyGroup {
    /// `None` where the machine has no v1 cpu controller, or this user may not make groups.
    fn start(name: &str) -> Option<Self> {
        let name = format!("tidegate-test-{name}-{}", std::process::id());
        let dirs: Vec<PathBuf> = ["cpu", "cpuacct"]
            .map(|controller| format!("/sys/fs/cgroup/{controller}/{name}").into())
            .into();
        if !dirs
            .iter()
            .all(|dir| dir.is_dir() || fs::create_dir(dir).is_ok())
        {
            return None;
        }
        let busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .spawn();
        let group = Self {
            dirs,
            busy: busy.expect("starts a shell"),
        };
        let cpu = group.dirs.first()?;
        fs::write(cpu.join("cpu.cfs_quota_us"), "20000").ok()?;
        // Only the quota may hold it back, whatever else the machine runs now.
        fs::write(cpu.join("cpu.shares"), "262144").ok()?;
        let pid = group.busy.id().to_string();
        let joined = |dir: &PathBuf| fs::write(dir.join("cgroup.procs"), &pid).is_ok();
        group.dirs.iter().all(joined).then_some(group)
    }
}

impl Drop for BusyGroup {
    fn drop(&mut self) {
        let ended = self.busy.kill().and_then(|()| self.busy.wait());
        let removed = self
            .dirs
            .iter()
            .filter(|dir| fs::remove_dir(dir).is_ok())
            .count();
        // A group left behind does no harm, and a failing test should say why it failed.
        let _tidy = ended.is_ok() && removed == self.dirs.len();
    }
}

/// Calls `tick` with the monotonic time until `SPAN` is over.
fn each_tick(start: Instant, mut tick: impl FnMut(u64)) {
    // Nobody ever sends: a receive that times out is a wait for the clock.
    let (_sender, never) = mpsc::channel::<()>();
    while start.elapsed() < SPAN {
        tick(now_ns(start));
        assert_eq!(
            never.recv_timeout(TICK),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
    }
}

/// Time since `start`, which counts as the first second.
fn now_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).expect("a short test") + 1_000_000_000
}

fn value(sampler: &Sampler, key: GroupKey, id: SignalId) -> f64 {
    let reading = sampler
        .group(key)
        .expect("the group is there")
        .readings()
        .get(id);
    reading
        .get()
        .unwrap_or_else(|missing| panic!("{}: {missing}", id.name()))
}

#[test]
fn a_group_with_a_fifth_of_a_cpu_is_read_as_full_and_throttled() {
    let Some(group) = BusyGroup::start("busy") else {
        skip::skip("needs root and a cgroup v1 cpu controller under /sys/fs/cgroup/cpu");
        return;
    };
    let (mut each, mut ends) = (
        Sampler::new(Roots::default()),
        Sampler::new(Roots::default()),
    );
    let key = each
        .watch_process(group.busy.id())
        .expect("watches the group");
    let key_of_ends = ends
        .watch_process(group.busy.id())
        .expect("watches the group");
    let start = Instant::now();
    ends.sample(now_ns(start));
    let mut seen = Vec::new();
    each_tick(start, |now_ns| {
        each.sample(now_ns);
        seen.push(
            each.group(key)
                .expect("the group is there")
                .readings()
                .get(SignalId::Throttle)
                .get(),
        );
    });
    ends.sample(now_ns(start));

    let used = value(&ends, key_of_ends, SignalId::UsedCpus);
    assert!((0.19..=0.21).contains(&used), "used {used} CPUs of 0.2");
    let cpu = value(&ends, key_of_ends, SignalId::Cpu);
    assert!((0.95..=1.05).contains(&cpu), "{cpu} of its quota");
    let effective = value(&each, key, SignalId::EffectiveCpus);
    assert!((effective - 0.2).abs() < 1e-9, "{effective} effective CPUs");
    let throttle = value(&each, key, SignalId::Throttle);
    assert!(throttle > 0.8, "throttled in {throttle} of its periods");
    let lost = value(&each, key, SignalId::ThrottledTime);
    assert!(
        (0.4..=0.9).contains(&lost),
        "lost {lost} of the time it wanted"
    );
    let first_faults: Vec<_> = seen
        .iter()
        .map_while(|read| read.err())
        .map(|missing| missing.fault)
        .collect();
    assert_eq!(first_faults.first(), Some(&Fault::FirstSample));
    assert!(
        first_faults.contains(&Fault::TooFewPeriods),
        "{first_faults:?}"
    );
    let limiter = each.group(key).expect("the group is there").limiter();
    assert!(matches!(limiter, Limiter::Quota(_)), "{limiter:?}");
}

#[test]
fn a_sample_allocates_nothing_once_files_and_threads_are_known() {
    let mut sampler = Sampler::new(Roots::default());
    let group = BusyGroup::start("quiet");
    match &group {
        Some(group) => {
            sampler
                .watch_process(group.busy.id())
                .expect("watches the group");
            sampler.watch_pattern(GroupPattern::new("/tidegate-test-quiet-*").expect("a pattern"));
        }
        None => skip::skip("without root and cgroup v1 the host alone is sampled"),
    }
    // Two searches and looks: the first finds what there is, the second grows what keeps it.
    for second in 1..4 {
        sampler.sample(second * 1_000_000_000);
    }
    let seen = allocation_counter::measure(|| {
        for tick in 40..80 {
            sampler.sample(tick * 100_000_000);
        }
    });
    assert_eq!(seen.count_total, 0);
    assert_eq!(sampler.groups().count(), group.iter().count());
}

#[test]
fn a_cgroup2_without_the_cpu_controller_is_not_called_never_throttled() {
    let top = PathBuf::from("/sys/fs/cgroup/unified");
    let controllers = fs::read_to_string(top.join("cgroup.controllers"));
    if !controllers.is_ok_and(|names| names.split_whitespace().all(|name| name != "cpu")) {
        skip::skip("needs a cgroup2 without the cpu controller at /sys/fs/cgroup/unified");
        return;
    }
    // The unified hierarchy alone, as a container sees it that gets only this mount.
    let mut sampler = Sampler::new(Roots {
        proc: "/proc".into(),
        cgroup: top,
    });
    let key = sampler.watch_path("/".as_ref()).expect("the top is there");
    sampler.sample(1_000_000_000);
    let throttle = sampler
        .group(key)
        .expect("the group is there")
        .readings()
        .get(SignalId::Throttle);
    throttle.get().expect_err("there is nothing to measure");
}
