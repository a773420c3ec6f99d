//! `tidegate events`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use super::output::{Failure, is_said, is_said_in_json, say, say_error};
use super::since::since;
use super::status::{read, told};
use crate::report::events::{EventReport, EventsReport};
use crate::words::many;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate events --since 1h
  tidegate events --follow
  tidegate events --json | jq -r 'select(.event == \"scope_state\") | .text'

The agent keeps the last 1000 events while it runs. The same again within a minute is one event with a
count. Root and the agent's user see all; others those of their tenant and of the host.")]
pub(super) struct Options {
    /// Go on and show what happens, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Begin then: a time ago ("1h"), or a time ("2026-11-30 23:40:00", UTC)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<u64>,
    /// Print one JSON object for each event
    #[arg(long)]
    json: bool,
    /// Directory of the agent's sockets
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

/// Time between two questions.
const LOOK: Duration = Duration::from_secs(1);

#[expect(
    clippy::disallowed_methods,
    reason = "what happens is asked for again and again; there is no event to wait for"
)]
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let mut last = 0;
    let mut shown = show(options, &mut last)?;
    if !options.follow {
        if shown == Shown::Nothing && !options.json {
            say("nothing has happened");
        }
        return Ok(());
    }
    let mut told_failure = false;
    while shown != Shown::Enough {
        std::thread::sleep(LOOK);
        shown = show_or_tell(options, &mut last, &mut told_failure);
    }
    Ok(())
}

/// What came of showing what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Some,
    /// Nobody reads any more.
    Enough,
}

/// Shows what is new. An agent that does not answer may be starting again: that is told once.
fn show_or_tell(options: &Options, last: &mut u64, told_failure: &mut bool) -> Shown {
    match show(options, last) {
        Ok(shown) => {
            *told_failure = false;
            shown
        }
        Err(Failure::Failed(text)) if !*told_failure => {
            *told_failure = true;
            say_error(format!("tidegate: {text}; trying again each second"));
            Shown::Nothing
        }
        Err(_told) => Shown::Nothing,
    }
}

fn show(options: &Options, last: &mut u64) -> Result<Shown, Failure> {
    let path = format!("/v1/events?after={last}");
    let body = told(options.runtime_dir.as_deref(), &path)?;
    let report: EventsReport = if options.json {
        serde_json::from_str(&body).map_err(Failure::of)?
    } else {
        read(&body)?
    };
    *last = report.last;
    let since_ms = options.since.unwrap_or(0).saturating_mul(1000);
    let mut shown = Shown::Nothing;
    for event in &report.events {
        if event.at_unix_ms < since_ms {
            continue;
        }
        let is_said = if options.json {
            is_said_in_json(serde_json::to_string(event).map_err(Failure::of)?)
        } else {
            is_said(line(event))
        };
        if !is_said {
            return Ok(Shown::Enough);
        }
        shown = Shown::Some;
    }
    Ok(shown)
}

/// An event on one line: when, how bad, what.
fn line(event: &EventReport) -> String {
    let EventReport {
        level, text, count, ..
    } = event;
    let mut line = format!(
        "{}  {level:<5}  {}: {text}",
        clock(event.at_unix_ms),
        event.event
    );
    for (name, value) in &event.fields {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        // Writing to a string cannot fail.
        let _cannot: std::fmt::Result = write!(line, " {name}={value}");
    }
    if *count > 1 {
        let first = clock(event.first_unix_ms);
        let _cannot: std::fmt::Result = write!(line, " ({} since {first})", many(*count, "time"));
    }
    line
}

/// A time of the clock, UTC.
fn clock(unix_ms: u64) -> String {
    /// The last one that can be written.
    const END_MS: u64 = 253_402_300_799_000;
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms.min(END_MS)));
    time.map_or_else(String::new, |time| {
        humantime::format_rfc3339_seconds(time).to_string()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_line_with_its_figures_and_how_often() {
        let event = json!({
            "number": 7, "event": "scope_state", "level": "warn", "at_unix_ms": 1_796_000_000_123_u64,
            "first_unix_ms": 1_795_999_990_000_u64, "count": 3, "text": "host: healthy -> overload",
            "fields": {"cause": "load", "refused": 5},
        });
        let mut event: EventReport = serde_json::from_value(event).unwrap();
        assert_eq!(
            line(&event),
            "2026-11-30T00:53:20Z  warn   scope_state: host: healthy -> overload cause=load refused=5 \
             (3 times since 2026-11-30T00:53:10Z)"
        );
        event.at_unix_ms = u64::MAX;
        event.count = 1;
        event.fields.clear();
        assert_eq!(
            line(&event),
            "9999-12-31T23:59:59Z  warn   scope_state: host: healthy -> overload"
        );
    }
}
