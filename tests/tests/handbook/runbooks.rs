//! The runbooks are those of the alerts.

use tidegate_tests::generated::{check, read};

use crate::blocks::line;

/// One alert, as its file has it.
#[derive(Default)]
struct Alert {
    name: String,
    severity: String,
    summary: String,
    description: String,
    runbook: Vec<String>,
}

/// The alerts of the file. It is read line by line: a list of alerts, each with the same keys.
fn alerts() -> Vec<Alert> {
    let text = read("config/prometheus/tidegate.rules.yml");
    let mut alerts: Vec<Alert> = Vec::new();
    let mut key = String::new();
    for line in text.lines() {
        let content = line.trim();
        if let Some(name) = content.strip_prefix("- alert: ") {
            alerts.push(Alert {
                name: name.to_owned(),
                ..Alert::default()
            });
            key.clear();
        }
        let Some(alert) = alerts.last_mut() else {
            continue;
        };
        let begins = [
            "expr",
            "for",
            "labels",
            "severity",
            "annotations",
            "summary",
            "description",
            "runbook_url",
            "runbook",
        ];
        let found = content
            .split_once(':')
            .filter(|(word, _)| begins.contains(word));
        let value = if let Some((word, value)) = found {
            word.clone_into(&mut key);
            let value = value.trim();
            if [">-", "|-", "|"].contains(&value) {
                ""
            } else {
                value
            }
        } else {
            content
        };
        let value = value.trim_matches('"');
        let add = |text: &mut String| {
            let space = if text.is_empty() || value.is_empty() {
                ""
            } else {
                " "
            };
            text.push_str(space);
            text.push_str(value);
        };
        match key.as_str() {
            "severity" => add(&mut alert.severity),
            "summary" => add(&mut alert.summary),
            "description" => add(&mut alert.description),
            "runbook" if !value.is_empty() => alert.runbook.push(value.to_owned()),
            _ => {}
        }
    }
    alerts
}

/// A text of Prometheus in words: what it fills in stands in capitals.
fn in_words(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}").unwrap_or((after, ""));
        words.push_str(before);
        if inside.contains("$value") {
            words.push('N');
        } else if let Some(label) = inside.split("$labels.").nth(1)
            && !inside.contains("with")
        {
            let label = label.split_whitespace().next().unwrap_or_default();
            words.push_str(&label.to_uppercase());
        } else if inside.trim() == "." {
            words.push_str("INSTANCE");
        }
        rest = after;
    }
    words.push_str(rest);
    words
}

#[test]
fn every_alert_has_its_runbook() {
    let alerts = alerts();
    assert!(alerts.len() > 10, "{} alerts", alerts.len());
    let mut text = String::new();
    for alert in &alerts {
        let Alert {
            name,
            severity,
            summary,
            description,
            runbook,
        } = alert;
        assert!(
            ![severity, summary, description]
                .iter()
                .any(|part| part.is_empty())
                && !runbook.is_empty(),
            "{name} has no severity, summary, description or runbook"
        );
        line(
            &mut text,
            format_args!("## {name}\n\n{severity}: {}\n", in_words(summary)),
        );
        line(&mut text, format_args!("{}\n", in_words(description)));
        for step in runbook {
            let is_step = step.starts_with(|first: char| first.is_ascii_digit());
            let indent = if is_step { "" } else { "   " };
            line(&mut text, format_args!("{indent}{step}"));
        }
        text.push('\n');
    }
    check("docs/runbooks.md", &[("runbooks", text)]);
}
