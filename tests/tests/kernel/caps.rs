//! What loads for whom: root, an agent with two capabilities, an agent with none.

use serde_json::Value;
use tidegate_tests::program::Program;
use tidegate_tests::{skip, until, user};

use crate::jvm::{JVM_UP, Jvm};
use crate::watching::Watching;

/// `CAP_PERFMON` and `CAP_BPF`, which older tools do not know by name.
const TWO: &str = "-all,+cap_38,+cap_39";

#[test]
fn root_loads_every_program_and_samples_the_run_queues() {
    let Some(watching) = Watching::begin() else {
        return;
    };
    let report = watching.telemetry.report();
    assert_eq!(report.missed, []);
    assert_eq!(report.unsampled, None);
    watching.telemetry.stop();
}

/// What the doctor finds as a user that owns nothing, with these capabilities.
fn doctor(capabilities: &str) -> Option<Value> {
    if !user::are_at_hand() {
        return None;
    }
    let mut command = skip::tool("setpriv", "--version")?;
    let [user, _other] = user::TWO.map(|id| id.to_string());
    let output = command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(format!("--inh-caps={capabilities}"))
        .arg(format!("--ambient-caps={capabilities}"))
        .arg(format!("--bounding-set={capabilities}"))
        .arg(Program::Tidegate.path())
        .args(["doctor", "--json"])
        .output()
        .expect("it starts");
    // 1 where something needs doing, as here: no agent answers.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).expect("the doctor prints JSON"))
}

/// What the doctor says of a signal of the host.
fn signal<'f>(findings: &'f Value, name: &str) -> &'f Value {
    &findings["scopes"][0]["signals"][name]
}

#[test]
fn two_capabilities_are_enough_for_the_scheduler() {
    if Watching::begin().is_none() {
        return;
    }
    let Some(findings) = doctor(TWO) else { return };
    let kernel = &findings["rungs"]["kernel"];
    assert_eq!(kernel["rung"], "btf", "{kernel}");
    assert_eq!(
        kernel["missed"].as_array().map(Vec::len),
        Some(0),
        "{kernel}"
    );
    let wait = signal(&findings, "runqueue_wait_p99");
    assert!(wait["value"].is_number(), "{wait}");
    let length = signal(&findings, "runqueue_length");
    assert!(length["value"].is_number(), "{length}");
}

#[test]
fn who_may_not_probe_a_jvm_is_told_which_capability_that_takes() {
    if Watching::begin().is_none() {
        return;
    }
    // It is another user's, so its library is found by its threads' names.
    let Some(jvm) = Jvm::start("caps", 1, 1) else {
        return;
    };
    until::holds("the JVM is up", JVM_UP, || jvm.has("ready"));
    let Some(findings) = doctor(TWO) else { return };
    let kernel = &findings["rungs"]["kernel"];
    let Some(fault) = kernel["jvm_fault"].as_str() else {
        let why = match kernel["jvm_libraries"].as_u64() {
            Some(0) => panic!("no JVM is met: {kernel}"),
            _probed => "this kernel lets CAP_PERFMON probe libraries",
        };
        return skip::skip(why);
    };
    for text in [fault, kernel["jvm_remedy"].as_str().unwrap_or_default()] {
        assert!(text.contains("CAP_SYS_ADMIN"), "{kernel}");
    }
}

#[test]
fn without_a_capability_the_ladder_is_taken_and_says_why() {
    let Some(findings) = doctor("-all") else {
        return;
    };
    let kernel = &findings["rungs"]["kernel"];
    assert_eq!(kernel["rung"], "files", "{kernel}");
    let missed = &kernel["missed"][0];
    for (part, word) in [("why", "CAP_BPF"), ("remedy", "root")] {
        let text = missed[part].as_str().unwrap_or_default();
        assert!(text.contains(word), "{part}: {missed}");
    }
    let wait = signal(&findings, "runqueue_wait_p99");
    let reason = wait["not_measured"].as_str().unwrap_or_default();
    assert!(reason.contains("CAP_PERFMON"), "{wait}");
    assert!(signal(&findings, "cpu")["value"].is_number());
}
