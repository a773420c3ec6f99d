//! `tidegate status`.

mod before;
mod findings;
mod tables;
mod text;
mod warnings;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::before::Before;
use super::output::{Failure, say, say_json};
use super::place::Surroundings;
use crate::caller::HttpConnection;
use crate::plain::plain;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate status
  tidegate status -v                         every signal and thread, too
  tidegate status --json | jq '.scopes[] | {name, state, cause}'")]
pub(super) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show every signal of every scope, its threads, and all resources and clients
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

/// Time over which rates are told.
const LOOK: Duration = Duration::from_secs(1);

#[expect(
    clippy::disallowed_methods,
    reason = "a rate is of a time that passes; there is no event to wait for"
)]
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let ask = || told(options.runtime_dir.as_deref(), "/v1/status");
    let begin = Instant::now();
    let body = ask()?;
    if options.json {
        say_json(body.trim_end());
        return Ok(());
    }
    let before = read(&body)?;
    std::thread::sleep(LOOK);
    let now = read(&ask()?)?;
    let since = Before {
        status: &before,
        seconds: begin.elapsed().as_secs_f64(),
    };
    say(text::text(&now, &since, options.verbose).trim_end());
    Ok(())
}

/// What the agent answers to a GET.
pub(super) fn told(runtime_dir: Option<&Path>, path: &str) -> Result<String, Failure> {
    let here = Surroundings::here();
    let caller = HttpConnection::connect(&here.to_ask(runtime_dir));
    let mut caller = caller.map_err(|error| here.unanswered(runtime_dir, &error))?;
    let answer = caller.get(path).map_err(Failure::of)?;
    let body = String::from_utf8_lossy(&answer.body);
    if answer.status != 200 {
        let text = serde_json::from_str(&body).map_or_else(
            |_other| format!("the agent answered {}: {body}", answer.status),
            |Wrong { error }| plain(&error).into_owned(),
        );
        return Err(Failure::Failed(text));
    }
    Ok(body.into_owned())
}

/// What the agent answers to a question that is wrong.
#[derive(Deserialize)]
struct Wrong {
    error: String,
}

/// Reads such an answer for people: names in it stay on their line and show what they are.
pub(super) fn read<T: DeserializeOwned>(body: &str) -> Result<T, Failure> {
    let read = serde_json::from_str(body).and_then(|mut value| {
        make_plain(&mut value);
        serde_json::from_value(value)
    });
    read.map_err(|error| {
        Failure::Failed(format!(
            "the agent's answer cannot be read ({error}); are both of one version?"
        ))
    })
}

fn make_plain(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = plain(text) {
                *text = shown;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(make_plain),
        Value::Object(members) => members.values_mut().for_each(make_plain),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
