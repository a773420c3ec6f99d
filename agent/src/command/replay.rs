//! `tidegate replay`.

use std::path::PathBuf;

use serde_json::json;

use super::output::{Failure, say, say_as_is};
use super::place::Surroundings;
use crate::config::Config;
use crate::replay::{Moment, Replay};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate replay                                     what this host's agent has recorded
  tidegate replay /var/lib/tidegate --config new.toml
  tidegate replay samples.jsonl --ticks | jq -c 'select(.state == \"overload\")'

The samples stay as they were measured: how services would have answered to other decisions is not
reckoned. Exit codes: 0 replayed, 1 an expectation of the file is missed, or the file is no recording,
2 invalid configuration.")]
pub(super) struct Options {
    /// Recording, or directory of recordings; without one the agent's state directory
    file: Option<PathBuf>,
    /// Configuration to replay with; without one that of the recording
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print one JSON object for each tick in place of the summary
    #[arg(long, conflicts_with = "json")]
    ticks: bool,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let loaded = options.config.as_deref().map(|file| {
        Config::load(Some(file)).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Failure::Invalid(lines.join("\n"))
        })
    });
    let loaded = loaded.transpose()?;
    let config = loaded.as_ref().map(|loaded| &*loaded.config);
    let file = options
        .file
        .clone()
        .unwrap_or_else(|| Surroundings::here().state(None, None));
    let mut each = |moment: &Moment<'_>| {
        if options.ticks {
            say_as_is(tick(moment));
        }
    };
    let report = Replay::new(config)
        .run(&file, &mut each)
        .map_err(Failure::of)?;
    if options.json {
        say_as_is(serde_json::to_string(&report).map_err(Failure::of)?);
    } else if !options.ticks {
        say(report.to_string().trim_end());
    }
    if report.expectations_missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Told(1))
    }
}

/// A tick as one JSON object.
fn tick(moment: &Moment<'_>) -> serde_json::Value {
    let published = moment.published;
    json!({
        "scope": moment.name,
        "at_s": tidegate_limits::number::double(moment.time_ns) * 1e-9,
        "state": published.state.name(),
        "cause": published.cause.name(),
        "entry": published.entry,
        "tight": published.tight,
        "allowed_qps": published.allowed_qps,
        "capacity_qps": published.capacity_qps,
        "base_rt_ms": published.base_rt_s.map(|seconds| seconds * 1e3),
        "demand": published.demand,
        "ineffective": published.ineffective,
        "held": published.held,
        "offered": moment.offered,
        "refused": moment.refused,
    })
}
