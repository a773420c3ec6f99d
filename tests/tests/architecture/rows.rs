//! Rows of tables lead to the code that they need: a metric to where its value is known, a parser to the fuzzer.

use tidegate_agent::telemetry::metric::MetricId;

use crate::source::rust_files;

/// A metric that is set where nobody looks for it would never be in a scrape.
#[test]
fn field_o14_every_metric_is_set_somewhere() {
    let files = rust_files(&["agent/src"]);
    let others = files
        .iter()
        .filter(|file| !file.path.ends_with("telemetry/metric.rs"));
    let sources: Vec<&str> = others
        .map(|file| {
            // What a test sets is no value.
            file.text
                .split("#[cfg(test)]\nmod")
                .next()
                .unwrap_or(&file.text)
        })
        .collect();
    for id in MetricId::ALL {
        let name = format!("MetricId::{id:?}");
        let names_it = |source: &&str| {
            let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
            source.split(&name).skip(1).any(ends)
        };
        assert!(
            sources.iter().any(names_it),
            "{name} ({}) is never set: call `Scrape::set` where its value is known, see agent/src/report/fill.rs",
            id.row().name
        );
    }
}

/// What comes from outside as bytes is fuzzed.
#[test]
fn field_o14_every_parser_has_a_row_for_the_fuzzer() {
    let files = rust_files(&["agent/src/procfs", "agent/src/signal"]);
    let fuzz = files
        .iter()
        .find(|file| file.path.ends_with("signal/fuzz.rs"));
    let fuzz = fuzz.expect("the fuzzer's rows").code();
    for file in files.iter().filter(|file| file.path.contains("/parse/")) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let name = name.trim_end_matches(".rs").trim_end_matches("_tests");
        assert!(
            name == "mod" || fuzz.names(name),
            "{} has no row in agent/src/signal/fuzz.rs: add one, and a seed in tests/fuzz/seeds",
            file.path
        );
    }
}

/// Parts of `agent/src/config` that only declare options or check them against each other.
const DECLARATIONS: &[&str] = &["settings! {", "impl Effects for ", "fn check_"];

/// The options of a file of the configuration, and the file without its declarations.
fn options_and_rest(text: &str) -> (Vec<String>, String) {
    let (mut options, mut rest, mut declares) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        declares |= DECLARATIONS.iter().any(|begin| line.starts_with(begin));
        if !declares {
            rest.push_str(line);
            rest.push('\n');
        }
        let option = line
            .strip_prefix("        ")
            .filter(|line| line.contains(" = "));
        let name: String = option
            .into_iter()
            .flat_map(str::chars)
            .take_while(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || *letter == '_'
            })
            .collect();
        let is_field = option.is_some_and(|option| {
            let after = option.get(name.len()..).unwrap_or_default();
            after.starts_with(": ") || after.starts_with(" as \"")
        });
        if declares && is_field && !name.is_empty() {
            options.push(name);
        }
        declares &= line != "}";
    }
    (options, rest)
}

/// An option that is read from the file and then by nobody does nothing, and says nothing of that.
#[test]
fn every_option_of_the_configuration_is_read_where_it_takes_effect() {
    let files = rust_files(&["agent/src"]);
    let (mut options, mut sources) = (Vec::new(), String::new());
    for file in files.iter().filter(|file| !file.is_test()) {
        let code = file.product_code();
        if file.path.starts_with("agent/src/config/") {
            // Options are found in the text, whose indentation they have; the rest in the code.
            let (found, rest) = options_and_rest(&file.text);
            options.extend(found);
            sources.push_str(rest.split("\n#[cfg(test)]\nmod").next().unwrap_or(&rest));
        } else if code.text().contains("crate::config") {
            // Elsewhere a field of the same name is something else.
            sources.push_str(code.text());
        }
    }
    assert!(
        options.len() > 80,
        "only {} options are found: {options:?}",
        options.len()
    );
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    for option in options {
        let read = format!(".{option}");
        assert!(
            sources.split(&read).skip(1).any(ends),
            "the option {option} is parsed and never read: read it where it takes effect, or take it out"
        );
    }
}
