//! The unit, the user and the folders that a package installs.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tidegate_tests::skip;

/// Highest exposure that `systemd-analyze security` may find, in tenths.
const EXPOSURE_MAX: u32 = 20;

/// First version of systemd that rates a unit that is not loaded.
const RATES_OFFLINE: u32 = 250;

const SOCKETS: [&str; 2] = ["tidegate-gate.socket", "tidegate-http.socket"];

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../systemd")
        .join(name)
}

/// The unit, with this test in place of the installed binary, which the check looks for.
fn unit() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let binary = std::env::current_exe().expect("this test is a file");
    let text = fs::read_to_string(shipped("tidegate.service")).expect("the unit is there");
    let text = text.replace("/usr/bin/tidegate", &binary.display().to_string());
    let path = folder.path().join("tidegate.service");
    fs::write(&path, text).expect("writes the unit");
    for socket in SOCKETS {
        fs::copy(shipped(socket), folder.path().join(socket)).expect("copies the unit");
    }
    (folder, path)
}

fn said(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn systemd_version() -> Option<u32> {
    let output = skip::tool("systemd-analyze", "--version")?
        .arg("--version")
        .output()
        .ok()?;
    let text = said(&output);
    let digits = text
        .strip_prefix("systemd ")?
        .split([' ', '.', '~'])
        .next()?;
    digits.parse().ok()
}

#[test]
fn unit_has_no_fault() {
    let Some(mut analyze) = skip::tool("systemd-analyze", "--version") else {
        return;
    };
    let (folder, path) = unit();
    let output = analyze
        .args(["verify", "--man=no"])
        .arg(path)
        .args(SOCKETS.map(|socket| folder.path().join(socket)))
        .output()
        .expect("it starts");
    // An unknown key gives exit code 0 and a line of text.
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{}",
        said(&output)
    );
}

#[test]
fn field_l9_the_units_of_an_escalation_have_no_fault_and_are_off_as_installed() {
    let Some(mut analyze) = skip::tool("systemd-analyze", "--version") else {
        return;
    };
    let names = ["tidegate-escalation.path", "tidegate-escalation.service"];
    let output = analyze
        .args(["verify", "--man=no"])
        .args(names.map(shipped))
        .output()
        .expect("it starts");
    assert!(
        output.status.success() && said(&output).is_empty(),
        "{}",
        said(&output)
    );
    // Nothing that is installed or started asks for them.
    let unit = fs::read_to_string(shipped("tidegate.service")).expect("the unit is there");
    assert!(!unit.contains("tidegate-escalation"));
}

#[test]
fn unit_is_hardened() {
    let Some(version) = systemd_version() else {
        return;
    };
    if version < RATES_OFFLINE {
        skip::skip(&format!(
            "systemd {version} cannot rate a unit offline; {RATES_OFFLINE} can"
        ));
        return;
    }
    let (_folder, path) = unit();
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(format!("--threshold={EXPOSURE_MAX}"))
        .arg(path)
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "over {EXPOSURE_MAX} tenths:\n{}",
        said(&output)
    );
}

/// Runs a systemd tool on a shipped file and an own root folder.
fn install(tool: &str, arguments: &[&str], root: &Path, file: &str) {
    let output = Command::new(tool)
        .arg(format!("--root={}", root.display()))
        .args(arguments)
        .arg(shipped(file))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{tool} {file}: {}", said(&output));
}

#[test]
fn user_and_folders_are_made() {
    for tool in ["systemd-sysusers", "systemd-tmpfiles"] {
        if skip::tool(tool, "--version").is_none() {
            return;
        }
    }
    if !rustix::process::geteuid().is_root() {
        skip::skip("only root can give a folder to another user");
        return;
    }
    let root = TempDir::new().expect("a temporary folder");
    fs::create_dir(root.path().join("etc")).expect("makes a folder");
    fs::create_dir(root.path().join("run")).expect("makes a folder");
    install("systemd-sysusers", &[], root.path(), "tidegate.sysusers");
    install(
        "systemd-tmpfiles",
        &["--create"],
        root.path(),
        "tidegate.tmpfiles",
    );
    let users = fs::read_to_string(root.path().join("etc/passwd")).expect("a user was made");
    assert!(users.starts_with("tidegate:"), "{users}");
    for folder in ["run/tidegate", "etc/tidegate/rules.d"] {
        assert!(root.path().join(folder).is_dir(), "{folder} is missing");
    }
}
