//! Every line of the log has an event name, and the handbook lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tidegate_agent::event::kind::EventKind;
use tidegate_tests::generated::check;

use crate::source::rust_files;

/// A line that the agent logs.
struct Event {
    level: &'static str,
    name: String,
    message: String,
    /// Whether it is kept at whatever level.
    kept: bool,
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The arguments of a call, from behind its opening bracket on.
fn arguments(text: &str) -> &str {
    let (mut depth, mut in_text, mut escaped) = (1_u32, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// What is said, on one line; the longest text of the arguments.
fn message(arguments: &str) -> String {
    let texts = arguments.split('"').skip(3).step_by(2);
    let longest = texts.max_by_key(|text| text.len()).unwrap_or_default();
    let lines = longest.split("\\\n").map(str::trim_start);
    lines.collect::<String>().replace('|', "\\|")
}

fn events() -> Vec<Event> {
    let mut events = Vec::new();
    for file in rust_files(&["agent/src"]) {
        for level in LEVELS {
            let call = format!("tracing::{level}!(");
            // What a test logs is no line of the agent's.
            let text = file.text.split("#[cfg(test)]").next().unwrap_or_default();
            for rest in text.split(&call).skip(1) {
                let arguments = arguments(rest).trim_start();
                let name = arguments
                    .strip_prefix("event = \"")
                    .and_then(|rest| rest.split('"').next());
                let name = name.unwrap_or_else(|| {
                    panic!(
                        "{}: a line of the log has no name: begin with event = \"what_happens\" in {call}{arguments})",
                        file.path
                    )
                });
                assert!(
                    name.chars()
                        .all(|letter| letter.is_ascii_lowercase() || letter == '_'),
                    "{}: {name}: a name of an event is lower case with _",
                    file.path
                );
                events.push(Event {
                    level,
                    name: name.to_owned(),
                    message: message(arguments),
                    kept: arguments.contains("kept = true"),
                });
            }
        }
    }
    events
}

#[test]
fn every_line_of_the_log_has_an_event_name_that_the_handbook_lists() {
    let mut by_name: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for event in events() {
        by_name.entry(event.name.clone()).or_default().push(event);
    }
    let mut text = "| event | level | message |\n|---|---|---|\n".to_owned();
    for (name, events) in by_name {
        let mut levels: Vec<&str> = events.iter().map(|event| event.level).collect();
        levels.dedup();
        let messages = events.iter();
        let mut messages: Vec<String> = messages
            .map(|event| match event.message.as_str() {
                // What is said is made of figures.
                "" => "as it is".to_owned(),
                message => message.to_owned(),
            })
            .collect();
        messages.sort();
        messages.dedup();
        let (levels, messages) = (levels.join(", "), messages.join("; or: "));
        writeln!(text, "| `{name}` | {levels} | {messages} |").expect("a string grows");
    }
    check("docs/log-events.md", &[("log events", text)]);
}

/// Lines that an operator may want to know of later: all but those for who looks for a fault, and of these the marked.
#[test]
fn every_line_that_tells_what_happened_is_kept_as_an_event() {
    let told = events().into_iter();
    let told = told.filter(|event| event.kept || !matches!(event.level, "debug" | "trace"));
    let told: BTreeSet<String> = told.map(|event| event.name).collect();
    let kinds: BTreeSet<String> = EventKind::all()
        .map(|kind| kind.name().to_owned())
        .collect();
    assert_eq!(
        told, kinds,
        "lines of the log, and KINDS in agent/src/event/kind.rs"
    );
}

#[test]
fn an_event_is_read_out_of_a_call() {
    let text = "event = \"a_b\", %error, \"one \\\n   two ({x})\"); next()";
    let read = arguments(text);
    assert!(read.ends_with("({x})\""), "{read}");
    assert_eq!(message(read), "one two ({x})");
}
