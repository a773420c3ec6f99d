//! Signals of this machine's own kernel.

#![cfg(test)]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_abi::signal::SignalId;
use tidegate_agent::signal::{
    Fault, Group, GroupKey, GroupPattern, Limiter, Readings, Roots, Sampler,
};
use tidegate_tests::skip;

const TICK: Duration = Duration::from_millis(100);
/// Thirty quota periods: long enough that one period more or less is lost in the noise.
const SPAN: Duration = Duration::from_secs(3);

/// A process in a v1 group of its own; both are gone when dropped.
struct Confined {
    dirs: Vec<PathBuf>,
    child: Child,
}

impl Confined {
    /// `None`, after saying so, where the machine has no v1 cpu controller, or this user may not make
    /// groups.
    fn start(name: &str, command: &mut Command) -> Option<Self> {
        let name = format!("tidegate-test-{name}-{}", std::process::id());
        let dir = |controller: &str| PathBuf::from(format!("/sys/fs/cgroup/{controller}/{name}"));
        let dirs = vec![dir("cpu"), dir("cpuacct")];
        if !dirs.iter().all(|dir| fs::create_dir(dir).is_ok()) {
            skip::skip("needs root and cgroup v1 under /sys/fs/cgroup/cpu and cpuacct");
            return None;
        }
        let child = command.stdin(Stdio::null()).spawn().expect("starts");
        let pid = child.id().to_string();
        for dir in &dirs {
            fs::write(dir.join("cgroup.procs"), &pid).expect("joins the group");
        }
        Some(Self { dirs, child })
    }

    fn busy(name: &str) -> Option<Self> {
        Self::start(name, Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    /// Sets the quota, and lets nothing but the quota hold the group back.
    fn limit(&self, run_us: u32) {
        let cpu = self.dirs.first().expect("the cpu hierarchy");
        fs::write(cpu.join("cpu.cfs_quota_us"), run_us.to_string()).expect("sets the quota");
        fs::write(cpu.join("cpu.shares"), "262144").expect("sets the weight");
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        let removed = self
            .dirs
            .iter()
            .filter(|dir| fs::remove_dir(dir).is_ok())
            .count();
        // A group left behind does no harm, and a failing test should say why it failed.
        let _tidy = ended.is_ok() && removed == self.dirs.len();
    }
}

/// Calls `tick` with the monotonic time until it answers, or `span` is over.
fn until<T>(start: Instant, span: Duration, mut tick: impl FnMut(u64) -> Option<T>) -> Option<T> {
    // Nobody ever sends: a receive that times out is a wait for the clock.
    let (_sender, never) = mpsc::channel::<()>();
    while start.elapsed() < span {
        if let Some(answer) = tick(now_ns(start)) {
            return Some(answer);
        }
        assert_eq!(
            never.recv_timeout(TICK),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
    }
    None
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
    let Some(group) = Confined::busy("full") else {
        return;
    };
    group.limit(20_000);
    let (mut each, mut ends) = (
        Sampler::new(Roots::default()),
        Sampler::new(Roots::default()),
    );
    let key = each
        .watch_process(group.child.id())
        .expect("watches the group");
    let key_of_ends = ends
        .watch_process(group.child.id())
        .expect("watches the group");
    let start = Instant::now();
    ends.sample(now_ns(start));
    let mut seen = Vec::new();
    let never = until(start, SPAN, |now_ns| {
        each.sample(now_ns);
        seen.push(
            each.group(key)
                .expect("the group is there")
                .readings()
                .get(SignalId::Throttle)
                .get(),
        );
        None::<()>
    });
    assert_eq!(never, None);
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
    let group = Confined::busy("quiet");
    if let Some(group) = &group {
        sampler
            .watch_process(group.child.id())
            .expect("watches the group");
        sampler.watch_pattern(GroupPattern::new("/tidegate-test-quiet-*").expect("a pattern"));
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

/// Collects the whole heap five times a second, with 150 threads that sleep.
const COLLECTING_JAVA: &str = "
public class Collecting {
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 150; i++) {
            Thread thread = new Thread(() -> { try { Thread.sleep(600000); } catch (Exception e) { } });
            thread.setDaemon(true);
            thread.start();
        }
        for (;;) { System.gc(); Thread.sleep(200); }
    }
}
";

/// Longest that a JVM may take until its signals are there, on a busy machine.
const JVM_UP: Duration = Duration::from_secs(90);

/// A JVM in a group of its own, and a sampler that watches it.
struct Jvm {
    /// The launcher reads the program from here while it starts.
    _source: TempDir,
    _confined: Confined,
    sampler: Sampler,
    key: GroupKey,
}

impl Jvm {
    fn start(name: &str, option: &str) -> Option<Self> {
        let mut java = skip::tool("java", "-version")?;
        let dir = TempDir::new().expect("a temporary folder");
        let source = dir.path().join("Collecting.java");
        fs::write(&source, COLLECTING_JAVA).expect("writes the program");
        let confined = Confined::start(name, java.args([option, "-Xmx64m"]).arg(source))?;
        let mut sampler = Sampler::new(Roots::default());
        let key = sampler
            .watch_process(confined.child.id())
            .expect("watches the group");
        Some(Self {
            _source: dir,
            _confined: confined,
            sampler,
            key,
        })
    }

    /// Samples until the signals are as wanted, or it has taken too long.
    fn becomes(&mut self, wanted: impl Fn(&Readings) -> Option<bool>) -> bool {
        let (sampler, key) = (&mut self.sampler, self.key);
        let seen = until(Instant::now(), JVM_UP, |now_ns| {
            sampler.sample(now_ns);
            wanted(sampler.group(key)?.readings())?.then_some(())
        });
        seen.is_some()
    }
}

#[test]
fn a_jvm_that_collects_its_whole_heap_is_seen_from_outside() {
    let Some(mut jvm) = Jvm::start("collecting", "-XX:+UseParallelGC") else {
        return;
    };
    let is_seen = jvm.becomes(|readings| {
        let full = readings.value(SignalId::FullGc)?;
        Some(full > 2.0 && readings.value(SignalId::Threads)? > 150.0)
    });
    let readings = jvm.sampler.group(jvm.key).map(Group::readings);
    assert!(is_seen, "{readings:?}");
    for id in [SignalId::GcShare, SignalId::GcCpu, SignalId::HeapUsed] {
        let share = value(&jvm.sampler, jvm.key, id);
        assert!((0.0..=1.0).contains(&share), "{}: {share}", id.name());
    }
}

#[test]
fn a_jvm_that_keeps_no_counters_is_not_measured_and_says_why() {
    let Some(mut jvm) = Jvm::start("silent", "-XX:-UsePerfData") else {
        return;
    };
    let says_why = jvm.becomes(|readings| {
        // With all its threads it is up, and would have made the file.
        let is_up = readings.value(SignalId::Threads)? > 150.0;
        let missing = readings.get(SignalId::FullGc).get().err()?;
        Some(is_up && missing.fault == Fault::NoPerfData)
    });
    assert!(
        says_why,
        "{:?}",
        jvm.sampler.group(jvm.key).map(Group::readings)
    );
}
