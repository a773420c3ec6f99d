//! The dashboard shows what there is, and what each alert is about.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_agent::telemetry::form::ScrapeForm;

use super::{RULES, alerts, full_scrape};

const DASHBOARD: &str = include_str!("../../../config/grafana/tidegate.json");

/// Metrics, and what is recorded from them, that an expression names.
fn named(expression: &str) -> BTreeSet<&str> {
    let is_word = |letter: char| letter.is_alphanumeric() || ['_', ':'].contains(&letter);
    let words = expression.split(|letter| !is_word(letter));
    let starts = ["tidegate_", "tidegate:", "process_"];
    words
        .filter(|word| starts.iter().any(|start| word.starts_with(start)) || *word == "up")
        .collect()
}

/// A panel of the dashboard: its title, what it says, and its expressions in one text.
fn panels() -> Vec<(String, String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let panels = panels.iter().map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        let expressions: Vec<_> = targets.map(|target| text(&target["expr"])).collect();
        (
            text(&panel["title"]),
            text(&panel["description"]),
            expressions.join("\n"),
        )
    });
    panels.collect()
}

#[test]
fn the_dashboard_names_metrics_that_exist() {
    let scrape = full_scrape(ScrapeForm::Text);
    let shown = |name: &str| {
        let of_line = |line: &str| line.split(['{', ' ']).next() == Some(name);
        let recorded = RULES.contains(&format!("- record: {name}\n"));
        name == "up" || recorded || scrape.lines().any(of_line)
    };
    let mut rows = Vec::new();
    for (title, _said, expressions) in panels() {
        let named = named(&expressions);
        if expressions.is_empty() {
            rows.push(title);
            continue;
        }
        assert!(!named.is_empty(), "{title} shows nothing");
        for name in named {
            assert!(shown(name), "{title}: there is no {name}");
        }
    }
    assert_eq!(rows, ["Overview", "Scope", "Resource", "Agent"]);
}

#[test]
fn every_alert_has_a_panel_that_shows_what_it_is_about() {
    let panels = panels();
    for (name, alert) in alerts() {
        let expression = alert.split_once("labels:").map_or("", |(before, _)| before);
        let about = named(expression);
        let shows = |(_title, said, expressions): &(String, String, String)| {
            let says = named_alerts(said).any(|alert| alert == name);
            says && !about.is_disjoint(&named(expressions))
        };
        assert!(panels.iter().any(shows), "{name} has no panel");
    }
    for (title, said, _expressions) in &panels {
        for name in named_alerts(said) {
            assert!(alerts().any(|(alert, _)| alert == name), "{title}: {name}");
        }
    }
}

/// Alerts that a text names.
fn named_alerts(said: &str) -> impl Iterator<Item = &str> {
    let words = said.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.len() > "Tidegate".len() && word.starts_with("Tidegate"))
}
