//! What docs/promises.md promises, held against a report.

use std::io;

use crate::law::Law;
use crate::report::{Report, Row};
use crate::scene::Name;

/// A tick of the agent, ms.
const TICK_MS: f64 = 100.0;
/// Longest way to healthy after overload, ms: ten ticks, and one look of the lab.
const HEALTHY_MS: f64 = 10.0 * TICK_MS + 50.0;
const FIRST_SHED_MS: f64 = 300.0;
/// 99th percentile of the first second of a step into overload, ms, and of the rest.
const STEP_P99_MS: f64 = 160.0;
const REST_P99_MS: f64 = 50.0;
const SLOW_DOWNSTREAM_P99_MS: f64 = 800.0;
/// Most CPU time that a cold start loses, seconds.
const COLD_START_LOST_S: f64 = 0.2;
/// 99.4 % are answered.
const CRITICAL_REFUSED: f64 = 0.006;
/// Share of those who ask for something else that are answered in time beside a slow downstream.
const BESIDE_SLOW: f64 = 0.95;
/// Goodput of one door beside that of another.
const DOORS_APART: f64 = 0.05;

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
    verdicts.extend(same_at_each_door(report));
    verdicts
}

/// Whether all promises were held.
///
/// # Errors
/// How many were not.
pub(crate) fn check(verdicts: &[Verdict]) -> io::Result<()> {
    let missed = verdicts.iter().filter(|verdict| !verdict.held).count();
    if missed == 0 {
        return Ok(());
    }
    let all = verdicts.len();
    Err(io::Error::other(format!(
        "{missed} of {all} promises were missed"
    )))
}

fn of_row(row: &Row) -> Vec<Verdict> {
    let (calm, heavy) = (row.offered <= 0.8, row.offered >= 2.0);
    match row.kind.scene {
        Name::Steady if heavy => overload(row),
        Name::Steady
        | Name::Async
        | Name::AcceptQueue
        | Name::Steal
        | Name::Deploy
        | Name::SteadyGate
        | Name::SteadyHttp
            if calm =>
        {
            vec![nobody_refused(row)]
        }
        Name::DeadDownstream => vec![nobody_refused(row), in_time(row)],
        Name::ColdStart => cold_start(row),
        Name::Async | Name::AcceptQueue | Name::Deploy | Name::Steal if heavy => {
            vec![goodput(row, 0.95)]
        }
        Name::HotReload => vec![goodput(row, 0.98)],
        Name::TwoServices => vec![goodput(row, 0.95)],
        Name::Burst if row.offered <= 1.0 => vec![nobody_refused(row)],
        Name::Greedy => vec![goodput(row, 0.99)],
        Name::Classes => vec![hardly_refused(row)],
        Name::SlowOfSeveral | Name::SlowDownstreamNoRule => vec![in_time(row)],
        Name::SlowDownstream => {
            let most = SLOW_DOWNSTREAM_P99_MS;
            vec![at_most(row, "p99 of the others, ms", row.p99_ms, most)]
        }
        Name::Steady
        | Name::Burst
        | Name::Neighbour
        | Name::Quota
        | Name::SlowShared
        | Name::Bimodal
        | Name::Steal
        | Name::Deploy
        | Name::SteadyGate
        | Name::SteadyHttp
        | Name::GcStorm
        | Name::RetryStorm
        | Name::Async
        | Name::AcceptQueue => Vec::new(),
    }
}

fn overload(row: &Row) -> Vec<Verdict> {
    vec![
        goodput(row, 0.98),
        at_most(
            row,
            "p99 of the first second, ms",
            row.p99_first_s_ms,
            STEP_P99_MS,
        ),
        at_most(row, "p99 of the rest, ms", row.p99_rest_ms, REST_P99_MS),
        at_most(row, "first shed, ms", row.first_shed_ms, FIRST_SHED_MS),
        at_most(row, "last shed, ms", Some(row.kind.last_shed_ms), TICK_MS),
        at_most(row, "healthy again, ms", row.release_ms, HEALTHY_MS),
    ]
}

fn cold_start(row: &Row) -> Vec<Verdict> {
    let lost = verdict(
        row,
        row.cpu_lost_s <= COLD_START_LOST_S,
        &format!(
            "{:.2} s of CPU lost, at most {COLD_START_LOST_S}",
            row.cpu_lost_s
        ),
    );
    let changes = Some(row.kind.changes_before_end);
    vec![
        lost,
        at_most(row, "changes of state before the load ends", changes, 1.0),
    ]
}

/// Of those who are judged beside something slow.
fn in_time(row: &Row) -> Verdict {
    let share = row.kind.in_time_ratio;
    verdict(
        row,
        share >= BESIDE_SLOW,
        &format!(
            "{:.1} % answered in time, at least {:.0}",
            share * 100.0,
            BESIDE_SLOW * 100.0
        ),
    )
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

/// At 5 times the capacity, and where slow and fast are one resource, in the same measurement.
fn better_than_rivals(report: &Report) -> Vec<Verdict> {
    let at_5 = |row: &&Row| row.kind.scene == Name::Steady && (row.offered - 5.0).abs() < 1e-9;
    let shared = |row: &&Row| row.kind.scene == Name::SlowShared;
    let at_5: Vec<&Row> = report.runs.iter().filter(at_5).collect();
    let shared: Vec<&Row> = report.runs.iter().filter(shared).collect();
    let mut verdicts = beside_rivals(&at_5);
    verdicts.extend(beside_rivals(&shared));
    verdicts
}

fn beside_rivals(rows: &[&Row]) -> Vec<Verdict> {
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

/// Over the sockets beside shared memory, in the same measurement.
fn same_at_each_door(report: &Report) -> Vec<Verdict> {
    let own = || {
        report
            .runs
            .iter()
            .filter(|row| row.kind.law == Law::Adaptive)
    };
    let memory = |offered: f64| {
        let steady = own().filter(|row| row.kind.scene == Name::Steady);
        let mut same = steady.filter(|row| (row.offered - offered).abs() < 1e-9);
        same.next()
    };
    let sockets = own().filter(|row| matches!(row.kind.scene, Name::SteadyGate | Name::SteadyHttp));
    sockets
        .filter_map(|row| {
            let memory = memory(row.offered)?.goodput_ratio;
            let least = memory * (1.0 - DOORS_APART);
            let held = row.goodput_ratio >= least;
            let what = format!(
                "goodput {:.1} %, at least {:.1} (shared memory has {:.1})",
                row.goodput_ratio * 100.0,
                least * 100.0,
                memory * 100.0
            );
            Some(verdict(row, held, &what))
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
            p99_first_s_ms: Some(150.0),
            p99_rest_ms: Some(40.0),
            late_first_s: 0.0,
            late_rest: 0.0,
            cpu_lost_s: 0.3,
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
                changes_before_end: 1.0,
                in_time_ratio: 0.96,
            },
        }
    }

    fn in_scene(scene: Name, offered: f64, goodput_ratio: f64) -> Row {
        let mut row = row(Law::Adaptive, offered, goodput_ratio);
        row.scene = scene.text();
        row.kind.scene = scene;
        row
    }

    fn missed(runs: Vec<Row>) -> (Vec<String>, usize) {
        let report = Report {
            capacity_qps: 200.0,
            refusal_cost_ratio: 0.01,
            runs,
        };
        let verdicts = verdicts(&report);
        let missed = verdicts.iter().filter(|verdict| !verdict.held);
        let missed: Vec<String> = missed.map(|verdict| verdict.text.clone()).collect();
        assert_eq!(check(&verdicts).is_ok(), missed.is_empty());
        (missed, verdicts.len())
    }

    #[test]
    fn each_row_is_held_against_what_its_load_promises() {
        let (missed, all) = missed(vec![
            row(Law::Adaptive, 0.8, 0.8),
            row(Law::Adaptive, 5.0, 0.985),
            row(Law::Gradient2, 5.0, 0.99),
            row(Law::None, 5.0, 0.0),
        ]);
        assert_eq!(
            missed,
            [
                "steady at 5x: healthy again, ms: never, at most 1050",
                "steady at 5x: goodput 98.5 %, gradient2 has 99.0",
            ]
        );
        assert_eq!(all, 9);
    }

    #[test]
    fn a_cold_start_is_held_to_the_cpu_that_it_loses_and_to_one_change() {
        let (missed, all) = missed(vec![in_scene(Name::ColdStart, 10.0, 0.9)]);
        let lost = "cold-start at 10x: 0.30 s of CPU lost, at most 0.2";
        assert_eq!((missed, all), (vec![lost.to_owned()], 2));
    }

    #[test]
    fn the_doors_are_held_against_shared_memory_at_the_same_load() {
        let mut steady = row(Law::Adaptive, 5.0, 1.0);
        steady.release_ms = Some(900.0);
        let (missed, _all) = missed(vec![
            steady,
            in_scene(Name::SteadyGate, 5.0, 0.96),
            in_scene(Name::SteadyHttp, 5.0, 0.94),
            in_scene(Name::SteadyHttp, 2.0, 0.5),
        ]);
        let http = "steady-http at 5x: goodput 94.0 %, at least 95.0 (shared memory has 100.0)";
        assert_eq!(missed, [http]);
    }
}
