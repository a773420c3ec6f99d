//! What a running agent says of its programs in the kernel. The doctor loads its own for a moment, so it would
//! not see that the agent has left a step since then, for what it cost.

use std::path::Path;

use serde::Serialize;

use super::programs::rung_text;
use crate::command::output::Failure;
use crate::command::status;
use crate::report::ebpf::EbpfReport;
use crate::report::status::StatusReport;
use crate::words::paragraph;

/// What the running agent answers.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Running {
    Tells(EbpfReport),
    Silent { no_answer: String },
}

impl Running {
    /// Asks the agent whose sockets are in a directory, or where they usually are.
    pub(super) fn ask(runtime_dir: Option<&Path>) -> Self {
        let told = status::told(runtime_dir, "/v1/status");
        let told = told.and_then(|body| status::read::<StatusReport>(&body));
        match told {
            Ok(status) => Self::Tells(*status.agent.ebpf),
            Err(Failure::Failed(no_answer) | Failure::Invalid(no_answer)) => {
                Self::Silent { no_answer }
            }
            Err(Failure::Told(_code)) => Self::Silent {
                no_answer: String::new(),
            },
        }
    }

    /// Writes it in lines.
    pub(super) fn write(&self, text: &mut String) -> std::fmt::Result {
        let name = "  running agent";
        match self {
            Self::Silent { no_answer } => paragraph(text, &format!("{name:<24}"), no_answer),
            Self::Tells(programs) => {
                let [percent, most] =
                    [programs.overhead, programs.max_overhead].map(|ratio| ratio * 100.0);
                let EbpfReport { rung, reason, .. } = programs;
                let rung = rung_text(rung);
                let told =
                    format!("{rung}, {percent:.2} % of one CPU, at most {most:.1} %: {reason}");
                paragraph(text, &format!("{name:<24}"), &told)?;
                match &programs.remedy {
                    Some(remedy) => paragraph(
                        text,
                        &format!("{:<24}", ""),
                        &format!("to have it: {remedy}"),
                    ),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_the_agent_left_is_told_with_its_reason_and_the_way_back() {
        let body = r#"{"agent":{"version":"1","ebpf":{"rung":"sched_info","overhead":0.001,"max_overhead":0.02,
            "reason":"not by btf: kernel programs cost more than max_overhead (2.6 % of one CPU for five seconds)",
            "remedy":"raise [ebpf] max_overhead","runs_per_s":7.0}},"scopes":[],"resources":[],"clients":[]}"#;
        let status: StatusReport = serde_json::from_str(body).unwrap();
        let mut text = String::new();
        Running::Tells(*status.agent.ebpf).write(&mut text).unwrap();
        let text: Vec<&str> = text.split_whitespace().collect();
        let text = text.join(" ");
        for part in [
            "running agent",
            "(sched_info), 0.10 %",
            "not by btf",
            "to have it: raise [ebpf] max_overhead",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }
}
