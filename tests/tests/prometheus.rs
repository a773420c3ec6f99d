//! The metrics and the alerts on them fit each other and Prometheus.

#![cfg(test)]

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use tidegate_agent::telemetry::metric::{MetricId, MetricKind};
use tidegate_agent::telemetry::scrape::Metrics;
use tidegate_segment::ledger::NodeTimes;
use tidegate_tests::skip;

const RULES: &str = include_str!("../../config/prometheus/tidegate.rules.yml");

/// A scrape that holds every row of the table.
fn full_scrape() -> String {
    let metrics = Metrics::new().expect("the table is sound");
    metrics.observe_tick_late(Duration::from_millis(1));
    let mut scrape = metrics.scrape();
    let from_table = |id: &&MetricId| **id != MetricId::TickLate;
    for id in MetricId::ALL.iter().filter(from_table).copied() {
        let labels = vec!["a"; id.row().labels.len()];
        match id.row().kind {
            MetricKind::Counter | MetricKind::Gauge => scrape.set_count(id, &labels, 1),
            MetricKind::Summary => scrape.set_summary(id, &labels, 1, Duration::from_millis(1)),
            MetricKind::Histogram => {
                let times = NodeTimes::default();
                scrape.set_times(id, &labels, (1, Duration::from_millis(1)), &times);
            }
        }
    }
    scrape.text(0).expect("encodes")
}

#[test]
fn alerts_name_metrics_that_exist() {
    let scrape = full_scrape();
    let words = RULES.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut named = 0;
    for name in words.filter(|word| word.starts_with("tidegate_")) {
        let shown = |line: &str| line.split(['{', ' ']).next() == Some(name);
        assert!(
            scrape.lines().any(shown),
            "no metric {name}; the table has:\n{scrape}"
        );
        named += 1;
    }
    assert!(named > 0, "the alerts name no metric at all");
}

#[test]
fn every_alert_says_what_to_do() {
    for alert in RULES.split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap_or_default();
        for part in ["severity:", "summary:", "description:", "runbook:"] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
    }
}

#[test]
fn promtool_finds_no_fault_in_the_scrape() {
    let Some(mut promtool) = skip::tool("promtool", "--version") else {
        return;
    };
    let mut child = promtool
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin
        .write_all(full_scrape().as_bytes())
        .expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success() && said.is_empty(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}
