//! Recorded ticks and their replay: the scripts of `tests/replay`, and a real agent's recording.
//! `tests/replay/README.md` says which is about what.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tidegate_agent::recording::{NEWER, Reader};
use tidegate_agent::replay::{Replay, ReplayReport};
use tidegate_tests::agent::Agent;
use tidegate_tests::program::Program;
use tidegate_tests::until::{self, SOON};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("replay");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it is readable").path());
    let mut scripts: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    scripts.sort();
    scripts
}

fn replay(path: &Path) -> ReplayReport {
    let replayed = Replay::new(None).run(path, &mut |_moment| {});
    replayed.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_script_comes_to_what_it_expects() {
    let scripts = scripts();
    assert!(scripts.len() >= 40, "{} scripts", scripts.len());
    let mut missed = Vec::new();
    for script in scripts {
        let report = replay(&script);
        assert_eq!(report.odd_lines, 0, "{report}");
        assert!(report.expectations_met > 0, "{}", script.display());
        missed.extend(report.expectations_missed);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn an_agent_that_was_killed_has_recorded_what_a_replay_repeats_to_the_tick() {
    let mut agent = Agent::start("", "[recording]\nsize_mib = 1\n");
    let directory = agent.runtime_dir();
    let ticks = |least: u64| {
        until::holds("recorded ticks", SOON, || {
            let replayed = Replay::new(None).run(&directory, &mut |_moment| {});
            replayed.is_ok_and(|report| report.ticks >= least)
        });
    };
    ticks(10);
    agent.kill();
    agent.start_again();
    let before = replay(&directory).ticks;
    ticks(before + 10);
    agent.kill();
    let report = replay(&directory);
    let host = report.scopes.first().expect("the host");
    assert_eq!(host.name, "host");
    assert_eq!(host.ticks_other_than_recorded, 0, "{report}");
    assert_eq!(report.lost_ticks, 0, "{report}");
    assert!(report.odd_lines <= 2, "{report}");
    let text = fs::read_to_string(directory.join(NEWER)).expect("it is there");
    assert!(text.contains(r#"{"start":{"version":1,"part":0"#));
    assert!(
        text.contains(r#"{"config":""#),
        "the configuration is there"
    );
    check_command(&directory);
}

/// The subcommand on the same recording, with a configuration of its own.
fn check_command(directory: &Path) {
    let config = directory.join("other.toml");
    fs::write(&config, "[law.tight]\nfloor_requests = 77\n").expect("the directory is ours");
    let agent = Program::Tidegate.path();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&agent);
        let output = command.arg("replay").arg(directory).args(arguments);
        let output = output.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let path = config.display().to_string();
    let report: Value = serde_json::from_str(&run(&["--json", "--config", &path])).expect("JSON");
    assert!(report["scopes"][0]["limits"]["tight"].as_u64() >= Some(77));
    let first = run(&["--ticks"]);
    let first: Value = serde_json::from_str(first.lines().next().expect("ticks")).expect("JSON");
    assert_eq!(first["scope"], "host");
    assert!(run(&[]).contains("scope host: "));
}

#[test]
fn a_recording_that_was_cut_or_spoiled_anywhere_is_replayed_or_refused_and_never_panics() {
    let script = fs::read(&scripts()[0]).expect("it is there");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(NEWER);
    for at in 0..script.len() {
        fs::write(&path, &script[..at]).expect("the directory is ours");
        match Replay::new(None).run(&path, &mut |_moment| {}) {
            Ok(report) => assert!(report.ticks > 0 && report.odd_lines <= 1, "{report}"),
            Err(error) => assert!(error.to_string().contains("no tick"), "{error}"),
        }
        let mut spoiled = script.clone();
        spoiled[at] ^= 0x11;
        fs::write(&path, &spoiled).expect("the directory is ours");
        // A version, a number of ticks or a place may be too much now.
        let _refused = Replay::new(None).run(&path, &mut |_moment| {});
    }
}

#[test]
fn what_is_no_recording_is_refused_with_line_and_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("junk.jsonl");
    let run = |path: &Path| {
        let mut command = Command::new(Program::Tidegate.path());
        let output = command.arg("replay").arg(path).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for (text, told) in [
        ("", "no tick in it"),
        (
            "Nov 30 host kernel: hello\n",
            "junk.jsonl:1: expected value",
        ),
        (
            "{\"lost\":1}\n{\"message\":\"hello\"}\n",
            "junk.jsonl:2: unknown variant `message`",
        ),
    ] {
        fs::write(&path, text).expect("the directory is ours");
        let error = run(&path);
        assert!(error.contains(told), "{text:?}: {error}");
    }
    let error = run(Path::new("/dev/zero"));
    assert!(error.contains("/dev/zero: is no plain file"), "{error}");
}

#[test]
fn too_much_is_refused_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(NEWER);
    for (line, told) in [
        (r#"{"tick":{"times":18446744073709551615}}"#, "ticks = "),
        (r#"{"tick":{"scope":4294967295}}"#, "scope = 4294967295"),
        (
            r#"{"repeat":{"times":18446744073709551615,"ticks":[{"times":10000001}]}}"#,
            "ticks = ",
        ),
        (r#"{"start":{"version":2,"part":0}}"#, "version = 2"),
        (r#"{"config":"tick = 3"}"#, "tick"),
    ] {
        fs::write(&path, format!("{line}\n")).expect("the directory is ours");
        let error = Replay::new(None).run(&path, &mut |_moment| {});
        let error = error.expect_err("it is too much").to_string();
        assert!(error.contains(":1: ") && error.contains(told), "{error}");
    }
    Reader::open(&directory.path().join("none")).expect_err("it is not there");
}
