//! What a command says without an agent, and its exit codes.

use std::fs;

use super::{err, out, tidegate};

#[test]
fn the_version_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let output = tidegate(directory.path(), &["--version"]);
    assert!(output.status.success());
    assert_eq!(
        out(&output).trim(),
        format!("tidegate {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_command_shows_examples() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["check", "--help"],
        &["doctor", "--help"],
        &["status", "--help"],
        &["enter", "--help"],
        &["bench", "--help"],
    ] {
        let output = tidegate(directory.path(), arguments);
        assert!(output.status.success(), "{arguments:?}");
        assert!(out(&output).contains("Examples:"), "{arguments:?}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["fly"][..],
        &["enter"],
        &["enter", "a", "--count", "0"],
        &["enter", "a", "--hold", "-1"],
        &["run", "--runtime-dir"],
    ] {
        let output = tidegate(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!err(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_check_tells_every_fault_and_ends_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let text = "tick = \"1h\"\n[cpu]\nenter = 7\n";
    fs::write(directory.path().join("bad.toml"), text).unwrap();
    let output = tidegate(directory.path(), &["check", "bad.toml"]);
    assert_eq!(output.status.code(), Some(2));
    for place in ["bad.toml:1:", "bad.toml:3:"] {
        assert!(err(&output).contains(place), "{}", err(&output));
    }
    let output = tidegate(directory.path(), &["check", "bad.toml", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_valid_file_is_said_to_be_valid() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("good.toml"), "[rules]\ndir = \"r\"\n").unwrap();
    let output = tidegate(directory.path(), &["check", "good.toml"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output).trim(), "good.toml: valid");
    let warning = "r: no such directory (allowed: a directory of rule files) hint: no rule is in force until \
                   it is there (warning)\n";
    assert_eq!(err(&output), warning);
    fs::create_dir(directory.path().join("r")).unwrap();
    let output = tidegate(directory.path(), &["check", "good.toml"]);
    assert_eq!(err(&output), "");
}

#[test]
fn without_an_agent_the_socket_and_the_way_out_are_named() {
    let directory = tempfile::tempdir().unwrap();
    for (command, socket) in [
        (&["enter", "a"][..], "gate.sock"),
        (&["status"], "http.sock"),
    ] {
        let arguments = [command, &["--runtime-dir", "."]].concat();
        let output = tidegate(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let text = err(&output);
        assert!(text.contains(socket), "{text}");
        assert!(text.contains("No such file"), "{text}");
        assert!(text.contains("start one with `tidegate run`"), "{text}");
        // What a killed agent leaves behind.
        drop(std::os::unix::net::UnixListener::bind(directory.path().join(socket)).unwrap());
        let text = err(&tidegate(directory.path(), &arguments));
        assert!(text.contains("start it again"), "{text}");
    }
}
