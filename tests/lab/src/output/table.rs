//! The report for people.

use std::fmt::Write as _;

use crate::promises::Verdict;
use crate::report::{Report, Row};

const HEAD: &str = "law        scene                    offered  goodput  bound   p50 ms   p99 ms  1st s p99/late    rest p99/late  refused  first shed  release  changes  CPU lost";

/// The whole table.
pub(crate) fn table(report: &Report) -> String {
    let mut text = format!(
        "capacity {:.1} requests/s, a refusal costs {:.2} % of a request\n\n{HEAD}\n",
        report.capacity_qps,
        report.refusal_cost_ratio * 100.0
    );
    for row in &report.runs {
        text.push_str(&line(row));
        text.push('\n');
    }
    text
}

/// A row.
pub(crate) fn line(row: &Row) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let whole = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _written = write!(
        text,
        "{:<10} {:<24} {:>6.2}x {:>7.1}% {:>5.1}% {:>8} {:>8} {:>15} {:>16} {:>7.2}% {:>11} {:>8} {:>8.0} {:>7.2} s",
        row.law,
        row.scene,
        row.offered,
        row.goodput_ratio * 100.0,
        row.bound * 100.0,
        number(row.p50_ms),
        number(row.p99_ms),
        format!("{}/{:.0}", whole(row.p99_first_s_ms), row.late_first_s),
        format!("{}/{:.0}", whole(row.p99_rest_ms), row.late_rest),
        row.refused_ratio * 100.0,
        whole(row.first_shed_ms),
        whole(row.release_ms),
        row.transitions,
        row.cpu_lost_s,
    );
    text
}

/// The promises, those that are missed last.
pub(crate) fn verdicts(verdicts: &[Verdict]) -> String {
    let (held, missed): (Vec<&Verdict>, Vec<&Verdict>) =
        verdicts.iter().partition(|verdict| verdict.held);
    let mut text = String::from("\n");
    let lines = held.iter().map(|verdict| ("held", verdict));
    for (word, verdict) in lines.chain(missed.iter().map(|verdict| ("MISSED", verdict))) {
        // Writing into a text cannot fail, here and below.
        let _written = writeln!(text, "{word:<7} {}", verdict.text);
    }
    let _written = write!(text, "{} held, {} missed", held.len(), missed.len());
    text
}
