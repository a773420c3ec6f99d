//! Every line of the log has an event name, and the handbook lists them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidegate_tests::generated::check;

use crate::source::rust_files;

/// A line that the agent logs.
struct Event {
    level: &'static str,
    name: String,
    message: String,
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
            for rest in file.text.split(&call).skip(1) {
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

#[test]
fn an_event_is_read_out_of_a_call() {
    let text = "event = \"a_b\", %error, \"one \\\n   two ({x})\"); next()";
    let read = arguments(text);
    assert!(read.ends_with("({x})\""), "{read}");
    assert_eq!(message(read), "one two ({x})");
}
