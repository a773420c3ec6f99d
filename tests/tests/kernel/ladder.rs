//! Kernels that lack something: the agent starts, takes the next step of the ladder, and says why in the doctor, the status
//! and the metrics.
//!
//! The real programs run in mounts of their own, where files of this kernel are hidden, or under another release.

use std::process::Command;

use serde_json::Value;
use tidegate_tests::agent::Agent;
use tidegate_tests::program::Program;
use tidegate_tests::{skip, until};

use crate::watching::Watching;

const ON: &str = "[ebpf]\nenabled = true\n";
/// The kernel tells nothing of its types.
const NO_TYPES: &str = "mount -t tmpfs none /sys/kernel/btf";
/// Where a kernel has no such folder, there is nothing to hide.
const NO_TRACEFS: &str = "for place in tracing debug; do mount -t tmpfs none /sys/kernel/$place || [ ! -d /sys/kernel/$place ]; done";
const TRACEFS: &str =
    "{ mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; }";

/// A host that lacks something, and what is to be said of it.
struct Lacking {
    /// Shell commands that take it away.
    away: String,
    /// What the program is then started by.
    by: &'static str,
    /// The step that is taken.
    rung: &'static str,
    /// Why not the best one, and what would help.
    why: &'static str,
    remedy: &'static str,
    /// The cause at the signal; `None` if it is measured nevertheless.
    cause: Option<&'static str>,
}

impl Lacking {
    /// A command that runs what its further arguments name on that host; `None`, after saying so, where this user can have none.
    fn command(&self) -> Option<Command> {
        let Self { away, by, .. } = self;
        let command = |then: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", &format!("{away} && {then}"), "sh"]);
            command
        };
        let tried = command("true").output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            skip::skip("needs mounts of its own, as root has them");
            return None;
        }
        Some(command(&format!("exec {by} \"$@\"")))
    }

    fn doctor(&self, form: &[&str]) -> Option<String> {
        let mut command = self.command()?;
        command.arg(Program::Tidegate.path()).arg("doctor");
        let output = command.args(form).output().expect("it starts");
        // 1 where something needs doing, as here: no agent answers.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("the doctor prints text");
        // Lines end where a terminal does.
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(words.join(" "))
    }

    /// Asks the doctor and an agent.
    fn is_told(&self) {
        let Self {
            rung, why, remedy, ..
        } = self;
        let Some(text) = self.doctor(&[]) else { return };
        for told in [
            format!("({rung}),"),
            format!("not by btf: {why}"),
            format!("to have it: {remedy}"),
        ] {
            assert!(text.contains(&told), "no {told:?} in {text}");
        }
        let found = self.doctor(&["--json"]).unwrap_or_default();
        let found: Value = serde_json::from_str(&found).expect("the doctor prints JSON");
        let kernel = &found["rungs"]["kernel"];
        assert_eq!(kernel["rung"], *rung, "{kernel}");
        assert_eq!(kernel["missed"][0]["remedy"], *remedy, "{kernel}");
        if let Some(command) = self.command() {
            self.is_told_by(&Agent::start_by(command, ON));
        }
    }

    fn is_told_by(&self, agent: &Agent) {
        let Self {
            rung, why, remedy, ..
        } = self;
        let signal = match self.cause {
            Some(cause) => format!(
                "tidegate_signal_missing{{scope=\"host\",signal=\"runqueue_wait_p99\",cause=\"{cause}\"}} 1"
            ),
            None => {
                "tidegate_signal_measured{scope=\"host\",signal=\"runqueue_wait_p99\"} 1".to_owned()
            }
        };
        let lines = [format!("tidegate_kernel_rung{{rung=\"{rung}\"}} 1"), signal];
        until::holds(&lines.concat(), 3 * until::SOON, || {
            let metrics = agent.ask_http("GET", "/metrics", "").body;
            lines
                .iter()
                .all(|line| metrics.lines().any(|told| told == line))
        });
        let ebpf = &agent.get("/v1/status")["agent"]["ebpf"];
        let reason = ebpf["reason"].to_string();
        assert!(reason.contains(&format!("not by btf: {why}")), "{ebpf}");
        assert_eq!(ebpf["remedy"], *remedy, "{ebpf}");
    }
}

#[test]
fn a_kernel_that_does_not_describe_its_types_has_plain_tracepoints() {
    if Watching::begin().is_none() {
        return;
    }
    Lacking {
        away: [NO_TYPES, TRACEFS].join(" && "),
        by: "",
        rung: "tracepoints",
        why: "the kernel does not describe its types (/sys/kernel/btf/vmlinux: No such file",
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF",
        cause: None,
    }
    .is_told();
}

#[test]
fn a_kernel_without_types_and_tracefs_leaves_the_files_and_the_probes_of_jvms() {
    if Watching::begin().is_none() {
        return;
    }
    let lacking = Lacking {
        away: [NO_TYPES, NO_TRACEFS].join(" && "),
        by: "",
        rung: "files",
        why: "the kernel does not describe its types (/sys/kernel/btf/vmlinux: No such file",
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF",
        cause: Some("programs_no_types"),
    };
    lacking.is_told();
    let Some(text) = lacking.doctor(&[]) else {
        return;
    };
    for told in [
        "not by tracepoints: tracefs is not mounted",
        "to have it: mount -t tracefs",
    ] {
        assert!(text.contains(told), "no {told:?} in {text}");
    }
}

#[test]
fn a_kernel_that_is_locked_down_is_named() {
    Lacking {
        away: "mount -t tmpfs none /sys/kernel/security && echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown".to_owned(),
        by: "",
        rung: "files",
        why: "the kernel is locked down",
        remedy: "boot without lockdown=confidentiality",
        cause: Some("programs_lockdown"),
    }
    .is_told();
}

#[test]
fn a_kernel_from_before_5_8_is_named() {
    let Some(mut tool) = skip::tool("setarch", "--version") else {
        return;
    };
    let old = tool.args(["--uname-2.6", "uname", "-r"]).output();
    let old = old.map(|output| output.stdout).unwrap_or_default();
    if !old.starts_with(b"2.6.") {
        return skip::skip("this kernel does not call itself by an old release");
    }
    Lacking {
        away: "true".to_owned(),
        by: "setarch --uname-2.6",
        rung: "files",
        why: "kernel programs need Linux 5.8",
        remedy: "a kernel from 5.8 on",
        cause: Some("programs_old_kernel"),
    }
    .is_told();
}

#[test]
fn root_without_the_capabilities_is_told_which() {
    if skip::tool("setpriv", "--version").is_none() {
        return;
    }
    Lacking {
        away: "true".to_owned(),
        by: "setpriv --bounding-set=-cap_21,-cap_38,-cap_39",
        rung: "files",
        why: "kernel programs need CAP_BPF and CAP_PERFMON",
        remedy: "run the agent as root, or with CAP_BPF and CAP_PERFMON as its unit does",
        cause: Some("programs_capability"),
    }
    .is_told();
}
