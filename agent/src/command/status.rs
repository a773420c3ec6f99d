//! `tidegate status`.

mod text;

use std::path::PathBuf;

use super::output::{Failure, say};
use super::place::Surroundings;
use crate::caller::HttpConnection;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate status
  tidegate status --json | jq '.scopes[] | {name, state, cause}'")]
pub(super) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let directory = Surroundings::here().to_ask(options.runtime_dir.as_deref());
    let mut caller = HttpConnection::connect(&directory).map_err(Failure::of)?;
    let answer = caller.get("/v1/status").map_err(Failure::of)?;
    let body = String::from_utf8_lossy(&answer.body);
    if answer.status != 200 {
        let text = format!("the agent answered {}: {body}", answer.status);
        return Err(Failure::Failed(text));
    }
    if options.json {
        say(body.trim_end());
        return Ok(());
    }
    let status = serde_json::from_str(&body).map_err(|error| {
        Failure::Failed(format!(
            "the agent's status cannot be read ({error}); are both of one version?"
        ))
    })?;
    say(text::text(&status).trim_end());
    Ok(())
}
