//! The report as a page for the project's documents.

use std::fmt::Write as _;

use crate::promises::Verdict;
use crate::report::{Report, Row};

/// The page: the table, then what was promised.
pub(crate) fn page(report: &Report, verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "# Figures of the overload lab\n\nMade by the lab; see [its README](../README.md) for what the columns mean.\n\n\
         Capacity {:.1} requests a second; a refusal costs {:.2} % of a request.\n\n![goodput](goodput.svg)\n\n\
         | law | scene | offered | goodput, % | bound, % | p50, ms | p99, ms | 1st second: p99, ms / late | rest: p99, ms / late | p99 at peak, ms | refused, % | first shed, ms | release, ms | changes | CPU lost, s |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        report.capacity_qps,
        report.refusal_cost_ratio * 100.0
    );
    for row in &report.runs {
        line(&mut text, row);
    }
    let held = verdicts.iter().filter(|verdict| verdict.held).count();
    // Writing into a text cannot fail, here and below.
    let _written = write!(
        text,
        "\n## Promises\n\n{held} held, {} missed.\n\n",
        verdicts.len().saturating_sub(held)
    );
    for Verdict { held, text: what } in verdicts {
        let word = if *held { "held" } else { "**missed**" };
        let _written = writeln!(text, "* {word}: {what}");
    }
    text
}

fn line(text: &mut String, row: &Row) {
    let whole = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
    let _written = writeln!(
        text,
        "| {} | {} | {} × | {:.1} | {:.1} | {} | {} | {} / {:.0} | {} / {:.0} | {:.0} | {:.2} | {} | {} | {:.0} | {:.2} |",
        row.law,
        row.scene,
        row.offered,
        row.goodput_ratio * 100.0,
        row.bound * 100.0,
        whole(row.p50_ms),
        whole(row.p99_ms),
        whole(row.p99_first_s_ms),
        row.late_first_s,
        whole(row.p99_rest_ms),
        row.late_rest,
        row.kind.yardstick.peak_p99_ms,
        row.refused_ratio * 100.0,
        whole(row.first_shed_ms),
        whole(row.release_ms),
        row.transitions,
        row.cpu_lost_s,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_told_with_the_rest() {
        let report = Report {
            capacity_qps: 200.0,
            refusal_cost_ratio: 0.01,
            runs: Vec::new(),
        };
        let verdict = |held| Verdict {
            held,
            text: "p99".to_owned(),
        };
        let page = page(&report, &[verdict(true), verdict(false)]);
        assert!(page.contains("1 held, 1 missed."), "{page}");
        assert!(page.contains("* held: p99\n* **missed**: p99\n"), "{page}");
    }
}
