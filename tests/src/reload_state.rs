//! What an agent tells of a configuration or of rules that it refused.

use serde_json::Value;

use crate::agent::Agent;
use crate::program::Program;

/// How the last reload was refused, as `/v1/status` says it.
///
/// # Panics
/// If the agent does not answer.
pub fn refused(agent: &Agent) -> Value {
    let status = agent.get("/v1/status");
    let refused = status.pointer("/agent/reload_refused");
    refused.cloned().unwrap_or_default()
}

/// Whether the metric says that the last reload was a good one.
///
/// # Panics
/// If the agent does not answer.
pub fn is_metric_good(agent: &Agent) -> bool {
    let metrics = agent.ask_http("GET", "/metrics", "").body;
    metrics.contains("\ntidegate_config_last_reload_successful 1\n")
}

/// What `tidegate status` says, whatever the width at which it is wrapped.
///
/// # Panics
/// If it does not start.
#[expect(clippy::expect_used, reason = "a test ends here")]
pub fn status(agent: &Agent) -> String {
    let mut command = Program::Tidegate.command();
    command.arg("status").arg("--runtime-dir");
    let output = command.arg(agent.runtime_dir()).output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
