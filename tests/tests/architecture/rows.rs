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
