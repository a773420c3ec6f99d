//! What the agent says when it has started: where it is, what it measures, what it cannot and why.

use std::fmt::Write as _;
use std::path::Path;

use tidegate_abi::signal::SignalId;

use super::keeper::Keeper;
use crate::control::{ScopeSnapshot, Snapshot};
use crate::door::{DOORS, http};
use crate::procfs::Lack;
use crate::procfs::{Missing, NoValue};
use crate::words::paragraph;

/// Where the agent can be reached, and by what it decides.
pub(super) fn places(keeper: &Keeper, directory: &Path) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_places(&mut text, keeper, directory);
    text
}

fn write_places(text: &mut String, keeper: &Keeper, directory: &Path) -> std::fmt::Result {
    let version = env!("CARGO_PKG_VERSION");
    let pid = std::process::id();
    writeln!(
        text,
        "tidegate {version} serves (pid {pid}); Ctrl-C ends it"
    )?;
    for socket in DOORS.iter().map(|door| door.file_name) {
        writeln!(text, "  socket   {}", directory.join(socket).display())?;
    }
    let http = &keeper.config().http;
    if http.metrics_enabled {
        writeln!(text, "  metrics  http://{}/metrics", http.metrics_listen)?;
    }
    match keeper.config_file() {
        Some(file) => writeln!(text, "  config   {}", file.display())?,
        None => writeln!(text, "  config   built-in defaults")?,
    }
    let rules = keeper.rules_directory().display();
    let there = if keeper.rules_directory().is_dir() {
        ""
    } else {
        ", which is not there yet: make it, and it is read"
    };
    writeln!(text, "  rules    {} from {rules}{there}", keeper.rules())?;
    let socket = directory.join(http::FILE_NAME);
    writeln!(text, "  try      {}", example(&socket))
}

/// A line for a shell that asks for a permit.
fn example(socket: &Path) -> String {
    // A quote in a path ends the quoted part, and begins it again behind an escaped one.
    let socket = socket.display().to_string().replace('\'', "'\\''");
    let body = "'{\"resource\":\"order-create\"}'";
    format!("curl --unix-socket '{socket}' -d {body} http://tidegate/v1/enter")
}

/// Whether a signal comes with one of the next ticks.
const fn waits(missing: Missing) -> bool {
    matches!(
        missing.fault,
        NoValue::NotSampled | NoValue::FirstSample | NoValue::Kernel(Lack::Starting)
    )
}

/// Whether a signal waits for its second sample still.
pub(super) fn is_settling(snapshot: &Snapshot) -> bool {
    snapshot.ticks == 0
        || snapshot
            .scopes
            .iter()
            .any(|scope| missing(scope).any(|(_id, missing)| waits(missing)))
}

/// What is measured and what is not, once a few ticks have passed.
pub(super) fn signals(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_signals(&mut text, snapshot);
    text
}

fn write_signals(text: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
    for scope in &snapshot.scopes {
        let told = format!("scope {} measures {}", scope.name, measured(scope));
        paragraph(text, "  ", &told)?;
        let lacks = lacks(scope);
        if !lacks.is_empty() {
            paragraph(
                text,
                "    not ",
                &format!("{}; `tidegate doctor` tells what helps", lacks.join("; ")),
            )?;
        }
    }
    Ok(())
}

/// The same for the log: a line for each scope.
pub(super) fn log_signals(snapshot: &Snapshot) {
    for scope in &snapshot.scopes {
        let (name, lacks) = (&*scope.name, lacks(scope));
        let all = measured(scope).split(", ").count();
        if lacks.is_empty() {
            tracing::info!(event = "signals_measured", "{name}: measures {all} signals");
        } else {
            let lacks = lacks.join("; ");
            tracing::info!(
                event = "signals_measured",
                "{name}: measures {all} signals; not {lacks}"
            );
        }
    }
}

/// What is missing, together where it is for the same reason. What comes with the next tick is not missing.
fn lacks(scope: &ScopeSnapshot) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (id, missing) in missing(scope).filter(|(_id, missing)| !waits(*missing)) {
        let reason = missing.to_string();
        match reasons.iter_mut().find(|(known, _names)| *known == reason) {
            Some((_known, names)) => names.push(id.name()),
            None => reasons.push((reason, vec![id.name()])),
        }
    }
    let told = reasons.into_iter();
    told.map(|(reason, names)| format!("{} ({reason})", names.join(", ")))
        .collect()
}

fn measured(scope: &ScopeSnapshot) -> String {
    let readings = scope.readings.iter();
    let measured = readings.filter(|(_id, reading)| reading.get().is_ok());
    let names: Vec<&str> = measured.map(|(id, _reading)| id.name()).collect();
    names.join(", ")
}

/// What should be measured here and is not. What belongs to another kind of scope is left out.
fn missing(scope: &ScopeSnapshot) -> impl Iterator<Item = (SignalId, Missing)> {
    let readings = scope.readings.iter();
    readings.filter_map(|(id, reading)| {
        let missing = reading.get().err()?;
        let elsewhere = matches!(
            missing.fault,
            NoValue::HostOnly | NoValue::GroupOnly | NoValue::NoListener
        );
        (!elsewhere).then_some((id, missing))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_names_the_socket_whatever_its_directory_is_called() {
        assert_eq!(
            example(Path::new("/tmp/it's/http.sock")),
            "curl --unix-socket '/tmp/it'\\''s/http.sock' -d '{\"resource\":\"order-create\"}' \
             http://tidegate/v1/enter"
        );
    }
}
