//! `tidegate replay`.

use std::path::PathBuf;

use serde_json::json;

use super::output::{Failure, say, say_json};
use super::place::Surroundings;
use super::since::since;
use crate::config::Config;
use crate::replay::{Replay, ReplayMoment, ReplayReport};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate replay                                     what this host's agent has recorded
  tidegate replay /var/lib/tidegate --config new.toml
  tidegate replay --since 10m --scope orders          of one scope, the last ten minutes
  tidegate replay samples.jsonl --ticks | jq -c 'select(.state == \"overload\")'

The samples stay as measured. How services would have behaved is not simulated.
Rules are not replayed.

Exit codes: 0 replayed, 1 an expectation is missed or FILE is no recording,
2 invalid configuration.")]
pub(super) struct Options {
    /// Recording, or directory of recordings [default: the agent's state directory]
    file: Option<PathBuf>,
    /// Configuration to replay with [default: that of the recording]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Begin then: a time ago ("10m"), or a time ("2026-11-30 23:40:00", UTC)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<u64>,
    /// Show only this scope
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print one JSON object for each tick instead of the summary
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
    let mut each = |moment: &ReplayMoment<'_>| {
        let is_asked = options
            .scope
            .as_deref()
            .is_none_or(|name| name == moment.name);
        if options.ticks && is_asked {
            say_json(tick(moment));
        }
    };
    let mut report = Replay::new(config)
        .since(options.since)
        .run(&file, &mut each)
        .map_err(Failure::of)?;
    if let Some(name) = &options.scope {
        keep(&mut report, name)?;
    }
    if options.json {
        say_json(serde_json::to_string(&report).map_err(Failure::of)?);
    } else if !options.ticks {
        say(report.to_string().trim_end());
    }
    if report.expectations_missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Told(1))
    }
}

/// Keeps one scope of a report.
fn keep(report: &mut ReplayReport, name: &str) -> Result<(), Failure> {
    let names: Vec<&str> = report
        .scopes
        .iter()
        .map(|scope| scope.name.as_str())
        .collect();
    if !names.contains(&name) {
        let names = names.join(", ");
        return Err(Failure::Failed(format!(
            "there is no scope {name} in it; it has {names}"
        )));
    }
    report.scopes.retain(|scope| scope.name == name);
    Ok(())
}

/// A tick as one JSON object.
fn tick(moment: &ReplayMoment<'_>) -> serde_json::Value {
    let published = moment.published;
    json!({
        "scope": moment.name,
        "at_s": tidegate_limits::number::double(moment.time_ns) * 1e-9,
        "at_unix_s": moment.clock_ns.map(|clock| clock / 1_000_000_000),
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"start":{"version":1,"part":0,"unix_s":1796000000}}
{"scope":{"place":0,"name":"host","cgroup":null,"new":false}}
{"scope":{"place":1,"name":"orders","cgroup":"/orders","new":false}}
{"repeat":{"times":20,"ticks":[{"scope":0,"cpus":2},{"scope":1,"cpus":2}]}}
"#;

    fn replayed(since: Option<u64>) -> ReplayReport {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), LINES).unwrap();
        let replay = Replay::new(None).since(since);
        replay.run(file.path(), &mut |_moment| {}).unwrap()
    }

    #[test]
    fn field_o13_ticks_are_told_by_scope_with_times_of_the_clock() {
        let mut report = replayed(None);
        let text = report.to_string();
        for part in [
            "2 scopes replayed\nRefusals are those of scopes; what rules refuse is not replayed.\n",
            "scope host: 20 ticks in 2 s, until 2026-11-30 ",
            " UTC\n",
            "in each tick the state that was recorded",
            "too little work to know the capacity",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        let half = replayed(Some(1_796_000_001));
        assert!(
            half.scopes
                .iter()
                .all(|scope| (10..=11).contains(&scope.ticks)),
            "{half}"
        );
        keep(&mut report, "orders").unwrap();
        assert_eq!(report.scopes.len(), 1);
        let unknown = keep(&mut report, "nobody").unwrap_err();
        assert_eq!(
            unknown,
            Failure::Failed("there is no scope nobody in it; it has orders".to_owned())
        );
    }
}
