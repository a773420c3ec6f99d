//! What the doctor finds, with this machine's files and with none.

use std::path::Path;

use serde_json::Value;
use tidegate_abi::signal::SignalId;

use super::{out, tidegate};

fn findings(directory: &Path, arguments: &[&str]) -> Value {
    let mut all = vec!["doctor", "--json"];
    all.extend(arguments);
    let output = tidegate(directory, &all);
    // 1 where something needs doing: there may be no agent here.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    serde_json::from_str(&out(&output)).unwrap()
}

#[test]
fn every_signal_has_a_value_or_a_reason_and_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let findings = findings(directory.path(), &[]);
    for pressure in ["cpu", "memory", "io"] {
        let trigger = &findings["rungs"]["psi_triggers"][pressure];
        let is_armed = trigger["rung"] != "none" && trigger["why"].is_null();
        let says_why = trigger["why"].is_string() && trigger["better"].is_string();
        assert!(is_armed || says_why, "{pressure}: {trigger}");
    }
    let host = &findings["scopes"][0];
    assert_eq!(host["name"], "host");
    assert!(host["signals"]["effective_cpus"]["value"].as_f64() > Some(0.0));
    for scope in findings["scopes"].as_array().unwrap() {
        assert!(scope["waiters"]["rung"].is_string(), "{scope}");
        for id in SignalId::ALL {
            let signal = &scope["signals"][id.name()];
            let has_value = signal["value"].is_number() && signal["unit"].is_string();
            let says_why = signal["not_measured"].is_string() && signal["remedy"].is_string();
            assert!(has_value || says_why, "{}: {signal}", id.name());
        }
    }
}

#[test]
fn without_any_file_nothing_is_measured_and_nothing_is_0() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().to_str().unwrap();
    let roots = ["--proc-root", nowhere, "--cgroup-root", nowhere];
    let findings = findings(directory.path(), &roots);
    let host = &findings["scopes"][0];
    assert_eq!(host["waiters"]["rung"], "none");
    let trigger = &findings["rungs"]["psi_triggers"]["cpu"];
    assert_eq!(trigger["rung"], "none");
    assert!(trigger["better"].as_str().unwrap().contains("CONFIG_PSI"));
    for id in SignalId::ALL.iter().filter(|id| **id != SignalId::TickLate) {
        let signal = &host["signals"][id.name()];
        assert!(
            signal["not_measured"].is_string(),
            "{}: {signal}",
            id.name()
        );
    }
    assert!(findings["rungs"]["sampler"]["rung"].is_string());
}
