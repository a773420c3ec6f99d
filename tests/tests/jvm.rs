//! What a real JVM's collections and threads show, and what they do.

#![cfg(test)]

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_abi::decision::Cause;
use tidegate_abi::signal::SignalId;
use tidegate_agent::control::{DeclaredGroup, Driver, Handle, Plan};
use tidegate_agent::procfs::{NoValue, Roots};
use tidegate_agent::signal::{GroupKey, Readings, Sampler, WatchedGroup};
use tidegate_limits::law::settings::ThreadsSettings;
use tidegate_limits::law::{LawSettings, PublishedLimits};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::skip;
use tidegate_tests::ticks::until;

/// Collects the whole heap five times a second, with 150 threads that sleep; ends collecting after as
/// many times as it is told.
const COLLECTING_JAVA: &str = "
public class Collecting {
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 150; i++) {
            Thread thread = new Thread(() -> { try { Thread.sleep(600000); } catch (Exception e) { } });
            thread.setDaemon(true);
            thread.start();
        }
        int times = Integer.parseInt(args[0]);
        for (int i = 0; i < times; i++) { System.gc(); Thread.sleep(200); }
        Thread.sleep(600000);
    }
}
";

/// More times than a test lasts.
const FOR_EVER: u32 = 1_000_000;

/// Longest that a JVM may take until its signals are there, on a busy machine.
const JVM_UP: Duration = Duration::from_secs(90);

/// A JVM in a group of its own, and a sampler that watches it.
struct Jvm {
    /// The launcher reads the program from here while it starts.
    _source: TempDir,
    confined: ConfinedProcess,
    sampler: Sampler,
    key: GroupKey,
}

impl Jvm {
    fn start(name: &str, option: &str, times: u32) -> Option<Self> {
        let mut java = skip::tool("java", "-version")?;
        let dir = TempDir::new().expect("a temporary folder");
        let source = dir.path().join("Collecting.java");
        fs::write(&source, COLLECTING_JAVA).expect("writes the program");
        let confined = ConfinedProcess::start(
            name,
            java.args([option, "-Xmx64m"])
                .arg(source)
                .arg(times.to_string()),
        )?;
        let mut sampler = Sampler::new(Roots::default());
        let key = sampler
            .watch_process(confined.pid())
            .expect("watches the group");
        Some(Self {
            _source: dir,
            confined,
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
    let Some(mut jvm) = Jvm::start("collecting", "-XX:+UseParallelGC", FOR_EVER) else {
        return;
    };
    let is_seen = jvm.becomes(|readings| {
        let full = readings.value(SignalId::FullGc)?;
        Some(full > 2.0 && readings.value(SignalId::Threads)? > 150.0)
    });
    let readings = jvm.sampler.group(jvm.key).map(WatchedGroup::readings);
    assert!(is_seen, "{readings:?}");
    for id in [SignalId::GcShare, SignalId::GcCpu, SignalId::HeapUsed] {
        let share = readings.and_then(|readings| readings.value(id));
        let share = share.unwrap_or(f64::NAN);
        assert!((0.0..=1.0).contains(&share), "{}: {share}", id.name());
    }
}

#[test]
fn a_jvm_that_keeps_no_counters_is_not_measured_and_says_why() {
    let Some(mut jvm) = Jvm::start("silent", "-XX:-UsePerfData", FOR_EVER) else {
        return;
    };
    let says_why = jvm.becomes(|readings| {
        // With all its threads it is up, and would have made the file.
        let is_up = readings.value(SignalId::Threads)? > 150.0;
        let missing = readings.get(SignalId::FullGc).get().err()?;
        Some(is_up && missing.fault == NoValue::NoPerfData)
    });
    assert!(
        says_why,
        "{:?}",
        jvm.sampler.group(jvm.key).map(WatchedGroup::readings)
    );
}

/// A control loop that watches a JVM's group and does nothing of its own accord: the machine may be
/// busy with other work.
fn control_of(jvm: &Jvm) -> (Box<Driver>, Handle) {
    let mut settings = LawSettings {
        threads: Some(ThreadsSettings {
            hold_ns: 5_000_000_000,
            ..ThreadsSettings::over(150)
        }),
        ..LawSettings::default()
    };
    settings.marks.load = None;
    if let Some(marks) = &mut settings.marks.cpu {
        marks.sustain_ns = u64::MAX;
    }
    let declared = DeclaredGroup {
        name: "jvm".into(),
        cgroup: jvm.confined.cgroup.as_str().into(),
        cpus: None,
        settings: Arc::new(settings),
    };
    let plan = Plan {
        declared: vec![declared],
        ..Plan::default()
    };
    Driver::new(Sampler::new(Roots::default()), Vec::new(), plan)
}

#[test]
fn full_collections_lower_the_mark_and_threads_the_limit_and_both_come_back() {
    let Some(jvm) = Jvm::start("linked", "-XX:+UseParallelGC", 25) else {
        return;
    };
    let (mut driver, handle) = control_of(&jvm);
    let start = Instant::now();
    let mut becomes = |what: &str, wanted: fn(&PublishedLimits) -> bool| {
        let mut last = None;
        let seen = until(start, 2 * JVM_UP, |now_ns| {
            driver.tick(now_ns, Duration::ZERO);
            let scopes = handle.snapshot().scopes;
            let scope = scopes.iter().find(|scope| &*scope.name == "jvm")?;
            last = Some(scope.published);
            wanted(&scope.published).then_some(())
        });
        assert!(seen.is_some(), "{what}: {last:?}");
    };
    becomes("limited", |published| published.cause == Cause::Threads);
    becomes("mark lowered", |published| {
        published
            .cpu_mark
            .is_some_and(|mark| (mark - 0.70).abs() < 1e-9)
    });
    becomes("mark back", |published| published.cpu_mark == Some(0.85));
    becomes("expired", |published| published.cause == Cause::None);
}
