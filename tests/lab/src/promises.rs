//! What docs/promises.md promises, held against a report.

use crate::law::Law;
use crate::report::{Report, Row};
use crate::scene::Name;

/// A tick of the agent, ms.
const TICK_MS: f64 = 100.0;
/// Longest way to healthy after overload, ms: ten ticks, and one look of the lab.
const HEALTHY_MS: f64 = 10.0 * TICK_MS + 50.0;
const FIRST_SHED_MS: f64 = 300.0;
const SLOW_DOWNSTREAM_P99_MS: f64 = 800.0;
/// What is admitted before the first tick knows of a short CPU is lost.
const COLD_START_SHARE: f64 = 0.8;
/// 99.4 % are answered.
const CRITICAL_REFUSED: f64 = 0.006;

/// A promise and how a row keeps it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub held: bool,
    pub text: String,
}

/// Every promise that the report can tell something about.
pub(crate) fn verdicts(report: &Report) -> Vec<Verdict> {
    let own = |row: &&Row| row.kind.law == Law::Adaptive;
    let mut verdicts = Vec::new();
    for row in report.runs.iter().filter(own) {
        verdicts.extend(of_row(row));
    }
    verdicts.extend(better_than_rivals(report));
    verdicts
}

fn of_row(row: &Row) -> Vec<Verdict> {
    let (calm, heavy) = (row.offered <= 0.8, row.offered >= 2.0);
    match row.kind.scene {
        Name::Steady if heavy => overload(row),
        Name::Steady | Name::Async | Name::AcceptQueue if calm => vec![nobody_refused(row)],
        Name::ColdStart => vec![goodput(row, COLD_START_SHARE)],
        Name::Async | Name::AcceptQueue if heavy => vec![goodput(row, 0.95)],
        Name::Burst if row.offered <= 1.0 => vec![nobody_refused(row)],
        Name::Greedy => vec![goodput(row, 0.99)],
        Name::Classes => vec![hardly_refused(row)],
        Name::SlowDownstream => {
            let most = SLOW_DOWNSTREAM_P99_MS;
            vec![at_most(row, "p99 of the others, ms", row.p99_ms, most)]
        }
        Name::Steady
        | Name::Burst
        | Name::Neighbour
        | Name::Quota
        | Name::SlowDownstreamNoRule
        | Name::GcStorm
        | Name::RetryStorm
        | Name::Async
        | Name::AcceptQueue => Vec::new(),
    }
}

fn overload(row: &Row) -> Vec<Verdict> {
    let peak_p99_ms = row.kind.yardstick.peak_p99_ms;
    vec![
        goodput(row, 0.95),
        at_most(
            row,
            "p99 of the admitted, ms",
            row.p99_ms,
            3.0 * peak_p99_ms,
        ),
        at_most(row, "first shed, ms", row.first_shed_ms, FIRST_SHED_MS),
        at_most(row, "last shed, ms", Some(row.kind.last_shed_ms), TICK_MS),
        at_most(row, "healthy again, ms", row.release_ms, HEALTHY_MS),
    ]
}

fn goodput(row: &Row, share: f64) -> Verdict {
    let least = share * row.bound;
    verdict(
        row,
        row.goodput_ratio >= least,
        &format!(
            "goodput {:.1} %, at least {:.1}",
            row.goodput_ratio * 100.0,
            least * 100.0
        ),
    )
}

fn nobody_refused(row: &Row) -> Verdict {
    verdict(
        row,
        row.refused_ratio <= 0.0,
        &format!(
            "refused {:.2} %, nobody is to be",
            row.refused_ratio * 100.0
        ),
    )
}

/// Of the critical callers.
fn hardly_refused(row: &Row) -> Verdict {
    verdict(
        row,
        row.refused_ratio <= CRITICAL_REFUSED,
        &format!(
            "critical: {:.2} % refused, at most {:.2}",
            row.refused_ratio * 100.0,
            CRITICAL_REFUSED * 100.0
        ),
    )
}

fn at_most(row: &Row, what: &str, value: Option<f64>, most: f64) -> Verdict {
    let held = value.is_some_and(|value| value <= most);
    let value = value.map_or("never".to_owned(), |value| format!("{value:.0}"));
    verdict(row, held, &format!("{what}: {value}, at most {most:.0}"))
}

/// At 5 times the capacity, in the same measurement.
fn better_than_rivals(report: &Report) -> Vec<Verdict> {
    let at_5 = |row: &&Row| row.kind.scene == Name::Steady && (row.offered - 5.0).abs() < 1e-9;
    let rows: Vec<&Row> = report.runs.iter().filter(at_5).collect();
    let Some(own) = rows.iter().find(|row| row.kind.law == Law::Adaptive) else {
        return Vec::new();
    };
    let rivals = rows.iter().filter(|row| row.kind.law != Law::Adaptive);
    rivals
        .map(|rival| {
            verdict(
                own,
                own.goodput_ratio > rival.goodput_ratio,
                &format!(
                    "goodput {:.1} %, {} has {:.1}",
                    own.goodput_ratio * 100.0,
                    rival.law,
                    rival.goodput_ratio * 100.0
                ),
            )
        })
        .collect()
}

fn verdict(row: &Row, held: bool, what: &str) -> Verdict {
    Verdict {
        held,
        text: format!("{} at {}x: {what}", row.scene, row.offered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Yardstick;
    use crate::report::Kind;

    fn row(law: Law, offered: f64, goodput_ratio: f64) -> Row {
        Row {
            law: law.name(),
            scene: Name::Steady.text(),
            offered,
            goodput_ratio,
            bound: 1.0,
            p50_ms: Some(30.0),
            p99_ms: Some(90.0),
            refused_ratio: 0.0,
            first_shed_ms: Some(100.0),
            release_ms: None,
            transitions: 2.0,
            kind: Kind {
                law,
                scene: Name::Steady,
                yardstick: Yardstick {
                    capacity_qps: 200.0,
                    refusal_cost_ratio: 0.01,
                    peak_qps: 190.0,
                    peak_p99_ms: 40.0,
                },
                last_shed_ms: 40.0,
            },
        }
    }

    #[test]
    fn each_row_is_held_against_what_its_load_promises() {
        let report = Report {
            capacity_qps: 200.0,
            refusal_cost_ratio: 0.01,
            runs: vec![
                row(Law::Adaptive, 0.8, 0.8),
                row(Law::Adaptive, 5.0, 0.97),
                row(Law::Gradient2, 5.0, 0.98),
                row(Law::None, 5.0, 0.0),
            ],
        };
        let missed: Vec<String> = verdicts(&report)
            .into_iter()
            .filter(|verdict| !verdict.held)
            .map(|verdict| verdict.text)
            .collect();
        assert_eq!(
            missed,
            [
                "steady at 5x: healthy again, ms: never, at most 1050",
                "steady at 5x: goodput 97.0 %, gradient2 has 98.0",
            ]
        );
        assert_eq!(verdicts(&report).len(), 8);
    }
}
