//! Pauses of a real JVM, by its probes and by its own log.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_abi::signal::SignalId;
use tidegate_agent::ebpf::{PauseTotals, ProgramReport};
use tidegate_tests::confined::ConfinedProcess;
use tidegate_tests::skip;

use crate::watching::Watching;

/// Waits for a line, collects the whole heap so often with something in it, says so, and stays.
const COLLECTING_JAVA: &str = "
import java.nio.file.*;
public class Collecting {
    static Object[] kept;
    public static void main(String[] args) throws Exception {
        Path go = Path.of(args[0], \"go\"), done = Path.of(args[0], \"done\");
        kept = new Object[Integer.parseInt(args[2])];
        for (int i = 0; i < kept.length; i++) { kept[i] = new int[] { i, i + 1, i + 2 }; }
        Files.createFile(Path.of(args[0], \"ready\"));
        while (!Files.exists(go)) { Thread.sleep(20); }
        int times = Integer.parseInt(args[1]);
        for (int i = 0; i < times; i++) { System.gc(); }
        Files.createFile(done);
        Thread.sleep(600000);
    }
}
";

pub(crate) const JVM_UP: Duration = Duration::from_secs(90);

/// A JVM in a group of its own.
pub(crate) struct Jvm {
    pub(crate) folder: TempDir,
    pub(crate) confined: ConfinedProcess,
}

impl Jvm {
    /// Starts one that will collect so often while it keeps so many objects; it writes its log to
    /// the file `gc.log`.
    pub(crate) fn start(name: &str, times: u32, objects: u32) -> Option<Self> {
        let mut java = skip::tool("java", "-version")?;
        let folder = TempDir::new().expect("a temporary folder");
        let source = folder.path().join("Collecting.java");
        fs::write(&source, COLLECTING_JAVA).expect("writes the program");
        let log = folder.path().join("gc.log");
        let confined = ConfinedProcess::start(
            name,
            java.args(["-XX:+UseSerialGC", "-Xmx128m"])
                .arg(format!("-Xlog:gc*:file={}", log.display()))
                .arg(&source)
                .arg(folder.path())
                .arg(times.to_string())
                .arg(objects.to_string()),
        )?;
        Some(Self { folder, confined })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    pub(crate) fn go(&self) {
        fs::write(self.folder.path().join("go"), "").expect("the folder is ours");
    }
}

/// Number and sum in ms of the full collections that a JVM logged.
fn logged(log: &Path) -> (u64, f64) {
    let text = fs::read_to_string(log).unwrap_or_default();
    let pauses = text
        .lines()
        .filter(|line| line.contains("Pause Full (System.gc())"));
    let lengths = pauses.filter_map(|line| {
        let last = line.split_whitespace().next_back()?;
        last.strip_suffix("ms")?.parse::<f64>().ok()
    });
    lengths.fold((0, 0.0), |(count, sum), length| (count + 1, sum + length))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds")]
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[test]
fn alone_pauses_by_probes_and_by_the_jvms_own_log_agree_within_5_percent() {
    const TIMES: u32 = 40;
    let Some(mut watching) = Watching::begin() else {
        return;
    };
    let Some(jvm) = Jvm::start("pauses", TIMES, 400_000) else {
        return;
    };
    assert!(watching.run(JVM_UP, |_| jvm.has("ready")), "the JVM is up");
    let key = watching.watch(jvm.confined.pid());
    let met = |report: &ProgramReport| report.jvm_libraries > 0 || report.jvm_fault.is_some();
    assert!(
        watching.run(JVM_UP, |watching| met(&watching.telemetry.report())),
        "its library is met"
    );
    if watching.telemetry.report().jvm_libraries == 0 {
        let fault = watching.telemetry.report().jvm_fault;
        return skip::skip(&format!("this JVM has no probes: {fault:?}"));
    }
    let totals = |watching: &Watching| -> PauseTotals {
        let slot = key.kernel_slot().expect("it has a slot");
        watching.telemetry.report().pauses.of(slot)
    };
    let (log, before) = (jvm.folder.path().join("gc.log"), totals(&watching));
    let logged_before = logged(&log);
    jvm.go();
    assert!(watching.run(JVM_UP, |_| jvm.has("done")), "it collects");
    let all_seen = watching.run(Duration::from_secs(10), |watching| {
        totals(watching).collections - before.collections >= u64::from(TIMES)
    });
    let (seen, logged) = (totals(&watching), logged(&log));
    assert!(all_seen, "{seen:?}, logged {logged:?}");
    let seen_ms = ms(seen.collecting_ns - before.collecting_ns);
    let logged_ms = logged.1 - logged_before.1;
    assert_eq!(logged.0 - logged_before.0, u64::from(TIMES));
    assert!(
        (seen_ms / logged_ms - 1.0).abs() < 0.05,
        "{seen_ms} ms by probes, {logged_ms} ms by the log"
    );
    assert!(seen.safepoints >= u64::from(TIMES), "{seen:?}");
    assert!(
        seen.stopped_ns >= seen.collecting_ns - before.collecting_ns,
        "{seen:?}"
    );
    let longest = watching.value(key, SignalId::GcPause).unwrap_or(0.0);
    assert!(longest > 0.0 && longest * 1e3 <= seen_ms, "{longest} s");
}
