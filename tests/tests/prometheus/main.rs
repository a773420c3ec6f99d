//! The metrics and the alerts on them fit each other and Prometheus.

#![cfg(test)]

mod dashboard;
mod server;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tidegate_agent::telemetry::form::ScrapeForm;
use tidegate_agent::telemetry::metric::{MetricId, MetricKind};
use tidegate_agent::telemetry::scrape::Metrics;
use tidegate_segment::ledger::NodeTimes;
use tidegate_tests::skip;

const RULES: &str = include_str!("../../../config/prometheus/tidegate.rules.yml");

/// A scrape that holds every row of the table.
fn full_scrape(form: ScrapeForm) -> String {
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
    scrape.text(form, 0).expect("encodes")
}

#[test]
fn alerts_name_metrics_that_exist() {
    let scrape = full_scrape(ScrapeForm::Text);
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

/// Each alert: its name and the lines below it.
fn alerts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let alerts = RULES.split("- alert: ").skip(1);
    alerts.map(|alert| alert.split_once('\n').expect("a name and what it is"))
}

#[test]
fn every_alert_says_what_to_do_and_where_that_stands() {
    for (name, alert) in alerts() {
        for part in ["severity:", "summary:", "description:", "runbook:"] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
        let place = format!(
            "runbook_url: \"file:///usr/share/doc/tidegate/runbooks.md#{}\"\n",
            name.to_lowercase()
        );
        assert!(alert.contains(&place), "{name} has no {place}");
    }
}

/// A scrape without the moments in it.
fn timeless(form: ScrapeForm) -> String {
    let scrape = full_scrape(form);
    let lines = scrape.lines().map(|line| {
        let moment = ["_created", "_timestamp_seconds"].iter().any(|end| {
            line.split(['{', ' '])
                .next()
                .is_some_and(|name| name.ends_with(end))
        });
        match line.rsplit_once(' ') {
            Some((series, _moment)) if moment => format!("{series} MOMENT\n"),
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

#[test]
fn a_scrape_is_what_the_golden_ones_are() {
    for (form, name) in [
        (ScrapeForm::Text, "scrape.txt"),
        (ScrapeForm::OpenMetrics, "scrape.openmetrics"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/prometheus")
            .join(name);
        let scrape = timeless(form);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &scrape).expect("the golden file can be written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            golden == scrape,
            "{name} differs; UPDATE_GOLDEN=1 writes it anew:\n{scrape}"
        );
    }
}

#[test]
fn in_open_metrics_each_sample_is_of_the_family_before_it() {
    let scrape = full_scrape(ScrapeForm::OpenMetrics);
    let mut families = Vec::new();
    let mut kind = "";
    for line in scrape.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let (name, said) = head.split_once(' ').expect("name and kind");
            families.push(name);
            kind = said;
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().expect("a name");
            let family = families.last().expect("a family is named first");
            let suffix = name.strip_prefix(family).expect("it is of the family");
            let allowed: &[&str] = match kind {
                "counter" => &["_total", "_created"],
                "histogram" => &["_bucket", "_sum", "_count", "_created"],
                "summary" => &["_sum", "_count", "_created"],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{kind}: {line}");
        }
    }
    let all = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), all, "a family comes twice");
    assert!(scrape.ends_with("\n# EOF\n"), "{scrape}");
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
        .write_all(full_scrape(ScrapeForm::Text).as_bytes())
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
