//! An agent under limits of the process that are too low for it.

use std::fs;
use std::process::{Command, Output};

use super::err;

/// Runs an agent in a shell that has set a limit.
fn run_after(limit: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    fs::write(
        home.path().join("c.toml"),
        "[http]\nmetrics_enabled = false\n",
    )
    .unwrap();
    Command::new("sh")
        .args([
            "-c",
            &format!("{limit} && exec \"$0\" run --config c.toml --runtime-dir ."),
        ])
        .arg(env!("CARGO_BIN_EXE_tidegate"))
        .current_dir(home.path())
        .output()
        .expect("there is a shell")
}

#[test]
fn too_few_open_files_are_refused_with_how_many_are_needed() {
    let output = run_after("ulimit -n 16");
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let text = err(&output);
    assert!(
        text.contains("the hard limit is 16, at least 256 are needed"),
        "{text}"
    );
}

#[test]
fn files_that_may_not_grow_are_refused_with_what_is_needed_and_not_by_a_signal() {
    let output = run_after("ulimit -f 8");
    assert_eq!(output.status.code(), Some(1), "{:?}", output.status);
    let text = err(&output);
    assert!(
        text.contains("tidegate-board: ") && text.contains("RLIMIT_FSIZE"),
        "{text}"
    );
}
