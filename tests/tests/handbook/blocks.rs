//! The tables of the reference pages.

use std::fmt::Write as _;

use tidegate_abi::decision::Reason;
use tidegate_abi::signal::SignalId;
use tidegate_agent::config::Config;
use tidegate_agent::rule::authority::AuthorityOptions;
use tidegate_agent::rule::degrade::DegradeOptions;
use tidegate_agent::rule::flow::FlowOptions;
use tidegate_agent::rule::param::{ItemOptions, ParamOptions};
use tidegate_agent::rule::system::SystemOptions;
use tidegate_agent::schema::kind::ShownValue;
use tidegate_agent::schema::settings::{OptionRow, OptionTable};
use tidegate_agent::telemetry::metric::{MetricId, MetricKind};
use tidegate_tests::generated::check;

pub(crate) fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    text.write_fmt(args).expect("a string grows");
    text.push('\n');
}

/// A cell of a table: on one line, without a bar.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn docs(row: &OptionRow) -> String {
    let lines = row.docs.iter().map(|line| line.trim());
    cell(&lines.collect::<Vec<_>>().join(" "))
}

/// The options of a table of settings; tables in it are left to others.
fn options(rows: &[OptionRow]) -> String {
    let mut text = "| option | default | allowed | meaning |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let default = match &row.shown {
            ShownValue::Value(value) => format!("`{value}`"),
            ShownValue::Unset(example) => format!("not set, such as `{example}`"),
            ShownValue::Table(_) | ShownValue::Tables(_) => "none".to_owned(),
        };
        let allowed = cell(&row.allowed);
        let (key, docs) = (row.key, docs(row));
        line(
            &mut text,
            format_args!("| `{key}` | {} | {allowed} | {docs} |", cell(&default)),
        );
    }
    text
}

fn of<S: OptionTable>() -> String {
    options(&S::default().rows())
}

#[test]
fn the_reference_of_rules_is_that_of_the_code() {
    let mut reasons = "| reason | meaning |\n|---|---|\n".to_owned();
    for reason in Reason::ALL {
        let (name, meaning) = (reason.name(), reason.meaning().trim());
        line(&mut reasons, format_args!("| `{name}` | {meaning} |"));
    }
    let blocks = [
        ("flow", of::<FlowOptions>()),
        ("degrade", of::<DegradeOptions>()),
        ("param", of::<ParamOptions>()),
        ("param item", of::<ItemOptions>()),
        ("system", of::<SystemOptions>()),
        ("authority", of::<AuthorityOptions>()),
        ("reasons", reasons),
    ];
    check("docs/rules.md", &blocks);
}

/// A chapter for each table of the file.
fn settings(text: &mut String, name: &str, row: Option<&OptionRow>, rows: &[OptionRow]) {
    if let Some(row) = row {
        line(text, format_args!("\n## {name}\n\n{}\n", docs(row)));
    }
    let (tables, own): (Vec<&OptionRow>, Vec<&OptionRow>) = rows
        .iter()
        .partition(|row| matches!(row.shown, ShownValue::Table(_) | ShownValue::Tables(_)));
    let own: Vec<OptionRow> = own.into_iter().cloned().collect();
    if !own.is_empty() {
        text.push_str(&options(&own));
    }
    let path = name.trim_matches(['`', '[', ']']);
    for table in tables {
        let key = match path {
            "" => table.key.to_owned(),
            path => format!("{path}.{}", table.key),
        };
        match &table.shown {
            // What a table of a list holds stands further up under its own name.
            ShownValue::Table(rows) if name.starts_with("`[[") => {
                let told = rows.first().map(|first| first.key);
                line(text, format_args!("\n`[{key}]`: {}", docs(table)));
                assert!(told.is_some(), "{key} is empty");
            }
            ShownValue::Table(rows) => settings(text, &format!("`[{key}]`"), Some(table), rows),
            ShownValue::Tables(rows) => settings(text, &format!("`[[{key}]]`"), Some(table), rows),
            ShownValue::Value(_) | ShownValue::Unset(_) => {}
        }
    }
}

#[test]
fn the_reference_of_settings_is_that_of_the_code() {
    let mut text = String::new();
    settings(&mut text, "", None, &Config::default().rows());
    check("docs/settings.md", &[("settings", text)]);
}

#[test]
fn the_reference_of_signals_is_that_of_the_code() {
    let mut text = "| signal | unit | meaning |\n|---|---|---|\n".to_owned();
    for id in SignalId::ALL {
        let (name, unit, meaning) = (id.name(), id.unit().name(), id.meaning().trim());
        line(&mut text, format_args!("| `{name}` | {unit} | {meaning} |"));
    }
    check("docs/signals.md", &[("signals", text)]);
}

#[test]
fn the_reference_of_metrics_is_that_of_the_code() {
    let mut text = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for row in MetricId::ALL.iter().map(|id| id.row()) {
        let kind = match row.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Summary => "summary",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<&str> = row.labels.iter().map(|label| label.name()).collect();
        let (name, labels, help) = (row.name, labels.join(", "), row.help);
        line(
            &mut text,
            format_args!("| `{name}` | {kind} | {labels} | {help} |"),
        );
    }
    check("docs/metrics.md", &[("metrics", text)]);
}
