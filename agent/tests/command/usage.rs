//! What a command says without an agent, and its exit codes.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

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
fn field_o11_help_fits_80_columns() {
    let directory = tempfile::tempdir().unwrap();
    let commands = [
        "run", "check", "doctor", "status", "explain", "enter", "replay", "bench",
    ];
    for command in [&[][..]]
        .into_iter()
        .chain(commands.iter().map(std::slice::from_ref))
    {
        let arguments = [command, &["--help"]].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(&arguments)
            .env("COLUMNS", "80")
            .current_dir(directory.path())
            .output()
            .unwrap();
        for line in out(&output).lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
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
    for place in [
        "error: bad.toml:1:8: tick = \"1h\"; allowed: ",
        "error: bad.toml:3:9: cpu.enter = 7; allowed: a number from 0 to 1; a share of 1: write 0.07",
        "bad.toml: not valid (2 errors, 0 warnings)",
    ] {
        assert!(err(&output).contains(place), "{}", err(&output));
    }
    let output = tidegate(directory.path(), &["check", "bad.toml", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_check_tells_warnings_beside_faults() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    fs::create_dir(directory.path().join("r")).unwrap();
    write("c.toml", "[rules]\ndir = \"r\"\n");
    let rule = r#"[{"resource": "a", "count": 5, "grade": 1, "clusterMode": true, "clusterConfig": {"flowId": 1}}"#;
    write("r/flow.json", &format!("{rule}]"));
    write("r/bad.toml", "[[flow]]\nresource = \"b\"\ncuont = 1\n");
    let warned = |text: &str| {
        let report: serde_json::Value = serde_json::from_str(text).unwrap();
        let count = |what: &str| report[what].as_array().map_or(0, Vec::len);
        (count("faults"), count("warnings"))
    };
    let of_rules = tidegate(directory.path(), &["check", "c.toml", "--json"]);
    assert_eq!(warned(&out(&of_rules)), (2, 1), "{}", out(&of_rules));
    write(
        "c.toml",
        "tick = \"1h\"\n[overload]\n[socket]\nmode = \"0666\"\n",
    );
    let of_settings = tidegate(directory.path(), &["check", "c.toml", "--json"]);
    let (faults, _warnings) = warned(&out(&of_settings));
    assert!(faults > 0, "{}", out(&of_settings));
}

#[test]
fn a_valid_file_is_said_to_be_valid() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("good.toml"), "[rules]\ndir = \"r\"\n").unwrap();
    let output = tidegate(directory.path(), &["check", "good.toml"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(
        out(&output).trim(),
        "good.toml: valid (0 errors, 1 warning)"
    );
    let warning = "warning: r: no such directory; allowed: a directory of rule files; no rule is in force until \
                   it is there\n";
    assert_eq!(err(&output), warning);
    fs::create_dir(directory.path().join("r")).unwrap();
    let output = tidegate(directory.path(), &["check", "good.toml"]);
    assert_eq!(err(&output), "");
}

#[test]
fn field_o11_a_check_takes_the_file_as_other_commands_do() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("c.toml"), "tick = \"1h\"\n").unwrap();
    let [plain, named] = [&["check", "c.toml"][..], &["check", "--config", "c.toml"]]
        .map(|arguments| tidegate(directory.path(), arguments));
    assert_eq!(named.status.code(), Some(2));
    assert_eq!(err(&named), err(&plain));
    let both = tidegate(directory.path(), &["check", "c.toml", "--config", "c.toml"]);
    assert!(err(&both).contains("cannot be used with"), "{}", err(&both));
}

#[test]
fn field_o10_a_group_that_is_not_there_and_a_reserved_name_are_told_by_check() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[socket]\ngroup = \"nosuchgroup\"\n";
    fs::write(directory.path().join("c.toml"), text).unwrap();
    let output = tidegate(directory.path(), &["check", "c.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let fault = "error: c.toml:2:9: socket.group = \"nosuchgroup\"; allowed: a group of this machine; there is none \
                 of that name: make it with `groupadd --system nosuchgroup`\n";
    assert!(err(&output).starts_with(fault), "{}", err(&output));

    let text = "[[scope]]\nname = \"host\"\ncgroup = \"/x\"\n";
    fs::write(directory.path().join("c.toml"), text).unwrap();
    let output = tidegate(directory.path(), &["check", "c.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let fault = "c.toml:2:8: scope[0].name = \"host\"; allowed: any other name";
    assert!(err(&output).contains(fault), "{}", err(&output));
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

#[test]
fn bench_runs_the_program_that_was_built_beside_it_and_says_where_that_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let alone = folder.path().join("tidegate");
    fs::copy(env!("CARGO_BIN_EXE_tidegate"), &alone).expect("it is copied");
    let run = || Command::new(&alone).args(["bench", "--json"]).output();
    let missing = run().expect("it starts");
    assert_eq!(missing.status.code(), Some(1));
    let told = err(&missing);
    assert!(
        told.contains("tidegate-bench is not there") && told.contains("cargo build --release"),
        "{told}"
    );
    let beside = folder.path().join("tidegate-bench");
    symlink("/bin/echo", &beside).expect("it is linked");
    let found = run().expect("it starts");
    assert_eq!(
        (out(&found).trim(), found.status.code()),
        ("--json", Some(0))
    );
}
