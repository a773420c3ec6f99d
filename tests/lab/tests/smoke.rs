//! The lab from outside: one short run, from the agent to the JSON.

#![cfg(test)]

use std::process::{Command, Stdio};

use serde_json::Value;
use tidegate_tests::program::Program;

#[test]
fn alone_a_short_run_tells_figures_in_the_promised_shape_and_leaves_nothing_behind() {
    let agent = Program::Tidegate.path();
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let plot = dir.path().join("plot.svg");
    let lab = Command::new(env!("CARGO_BIN_EXE_tidegate-lab"))
        .args(["--offered", "0.5,3", "--seconds", "1", "--json", "--agent"])
        .arg(&agent)
        .arg("--svg")
        .arg(&plot)
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null())
        .output()
        .expect("the lab starts");
    let errors = String::from_utf8_lossy(&lab.stderr);
    assert!(lab.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&lab.stdout).expect("the lab prints JSON");
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(f64::NAN);
    assert!(number(&report, "capacity_qps") > 0.0, "{report}");
    assert!(number(&report, "refusal_cost_ratio") > 0.0, "{report}");
    let runs = report["runs"].as_array().expect("there are runs");
    let mut names: Vec<&String> = runs[0].as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "bound",
            "cpu_lost_s",
            "first_shed_ms",
            "goodput_ratio",
            "late_first_s",
            "late_rest",
            "law",
            "offered",
            "p50_ms",
            "p99_first_s_ms",
            "p99_ms",
            "p99_rest_ms",
            "refused_ratio",
            "release_ms",
            "scene",
            "transitions"
        ]
    );
    let [calm, overload] = runs.as_slice() else {
        panic!("two loads are two runs: {report}");
    };
    assert_eq!(
        (&calm["law"], &calm["scene"]),
        (&"adaptive".into(), &"steady".into())
    );
    assert!(number(calm, "goodput_ratio") > 0.0, "{report}");
    assert!(number(overload, "refused_ratio") > 0.0, "{report}");
    let drawn = std::fs::read_to_string(&plot).expect("the plot is there");
    assert!(drawn.starts_with("<svg") && drawn.contains("adaptive"));
    let left = std::fs::read_dir(dir.path()).expect("the directory is there");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["plot.svg"], "{errors}");
}
