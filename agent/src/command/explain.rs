//! `tidegate explain`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::output::{Failure, say, say_as_is};
use super::status::{read, told};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate explain order-create
  tidegate explain order-create --json | jq '.rules[] | select(.refused_total > 0)'")]
pub(super) struct Options {
    /// Name of the resource
    resource: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

/// What is shown; whatever else there is is for scripts.
#[derive(Debug, Deserialize)]
struct Explained {
    resource: String,
    counted_as: Option<String>,
    counts: Option<Counts>,
    rules: Vec<Rule>,
    scopes: Vec<Scope>,
}

#[derive(Debug, Deserialize)]
struct Counts {
    passed_total: u64,
    refused_total: BTreeMap<String, u64>,
    inflight: u64,
}

#[derive(Debug, Deserialize)]
struct Rule {
    id: String,
    kind: String,
    mode: String,
    place: String,
    refused_total: u64,
    observed_total: u64,
    last: Option<Last>,
    not_in_force: Option<String>,
    ends_in_s: Option<f64>,
    #[serde(default)]
    warnings: Vec<Warning>,
    now: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Warning {
    text: String,
}

#[derive(Debug, Deserialize)]
struct Last {
    value: u32,
    limit: u32,
    ago_ms: u64,
}

#[derive(Debug, Deserialize)]
struct Scope {
    name: String,
    state: String,
    cause: String,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let resource = encoded(&options.resource);
    let path = format!("/v1/explain?resource={resource}");
    let body = told(options.runtime_dir.as_deref(), &path)?;
    if options.json {
        say_as_is(body.trim_end());
        return Ok(());
    }
    say(text(&read(&body)?).trim_end());
    Ok(())
}

/// A value of a query; all but letters and digits is written as hexadecimal bytes.
fn encoded(value: &str) -> String {
    let bytes = value.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    });
    bytes.collect()
}

fn text(explained: &Explained) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_all(&mut text, explained);
    text
}

fn write_all(text: &mut String, explained: &Explained) -> std::fmt::Result {
    let Explained {
        resource,
        counted_as,
        counts,
        rules,
        scopes,
    } = explained;
    write!(text, "{resource}")?;
    match counted_as {
        None => write!(text, ": nothing was asked of it yet")?,
        Some(name) if name != resource => {
            write!(
                text,
                ": has no slot of its own; the rules of {name} act on it"
            )?;
        }
        Some(_) => {}
    }
    if let Some(counts) = counts {
        write_counts(text, counts)?;
    }
    writeln!(text, "\n")?;
    if rules.is_empty() {
        writeln!(text, "no rule acts on it")?;
    }
    for rule in rules {
        write_rule(text, rule)?;
    }
    writeln!(text)?;
    for Scope { name, state, cause } in scopes {
        write!(text, "scope {name}: {state}")?;
        if cause != "none" {
            write!(text, ", because of {cause}")?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn write_counts(text: &mut String, counts: &Counts) -> std::fmt::Result {
    let Counts {
        passed_total,
        inflight,
        refused_total,
    } = counts;
    let refused: u64 = refused_total.values().sum();
    write!(
        text,
        ": {passed_total} passed, {refused} refused, {inflight} in flight"
    )?;
    for (kind, count) in refused_total {
        if *count > 0 {
            write!(text, "\n  {count} by {kind}")?;
        }
    }
    Ok(())
}

fn write_rule(text: &mut String, rule: &Rule) -> std::fmt::Result {
    let Rule {
        id,
        kind,
        mode,
        place,
        refused_total,
        observed_total,
        last,
        not_in_force,
        ends_in_s,
        warnings,
        now,
    } = rule;
    write!(text, "{kind} rule {id} ({place})")?;
    if let Some(why) = not_in_force {
        write!(text, ": {why}")?;
    } else if mode == "observe" {
        write!(text, ": would have refused {observed_total}")?;
    } else {
        write!(text, ": refused {refused_total}")?;
    }
    if let Some(Last {
        value,
        limit,
        ago_ms,
    }) = last
    {
        write!(text, ", last {ago_ms} ms ago with {value} of {limit}")?;
    }
    writeln!(text)?;
    if let Some(seconds) = ends_in_s.filter(|_| not_in_force.is_none()) {
        writeln!(text, "  ends in {seconds:.0} s")?;
    }
    for Warning { text: warning } in warnings {
        writeln!(text, "  warning: {warning}")?;
    }
    if let Some(now) = now {
        let parts: Vec<_> = now
            .iter()
            .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
            .collect();
        writeln!(text, "  now: {}", parts.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_told_in_lines() {
        let explained = json!({
            "resource": "a", "counted_as": "a",
            "counts": {"passed_total": 7, "refused_total": {"flow": 2, "param": 0}, "inflight": 1},
            "rules": [{
                "id": "few", "kind": "flow", "mode": "enforce", "place": "a.toml:1:1",
                "refused_total": 2, "observed_total": 0,
                "last": {"value": 5, "limit": 5, "ago_ms": 12},
                "now": {"passed": 3, "limit": 5},
            }],
            "scopes": [{"name": "host", "state": "overload", "cause": "cpu"}],
        });
        let explained: Explained = serde_json::from_value(explained).unwrap();
        assert_eq!(
            text(&explained),
            "a: 7 passed, 2 refused, 1 in flight\n  2 by flow\n\n\
             flow rule few (a.toml:1:1): refused 2, last 12 ms ago with 5 of 5\n  \
             now: limit 5, passed 3\n\nscope host: overload, because of cpu\n"
        );
    }

    #[test]
    fn a_name_goes_into_a_query_as_it_is() {
        assert_eq!(encoded("GET:/a b"), "GET%3a%2fa%20b");
    }
}
