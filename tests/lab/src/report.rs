//! What a measurement tells: the medians of the runs, in the shape that scripts rely on.

use serde::Serialize;

use crate::calibrate::Yardstick;
use crate::figures::median;
use crate::law::Law;
use crate::scene::{self, Run};

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Of the plain service.
    pub capacity_qps: f64,
    pub refusal_cost_ratio: f64,
    pub runs: Vec<Row>,
}

/// Medians of the runs of one law in one scene at one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub law: &'static str,
    pub scene: String,
    pub offered: f64,
    pub goodput_ratio: f64,
    pub bound: f64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p99_first_s_ms: Option<f64>,
    pub p99_rest_ms: Option<f64>,
    pub late_first_s: f64,
    pub late_rest: f64,
    pub cpu_lost_s: f64,
    pub refused_ratio: f64,
    pub first_shed_ms: Option<f64>,
    pub release_ms: Option<f64>,
    pub transitions: f64,
    /// What the row is held against; not part of the JSON.
    #[serde(skip)]
    pub kind: Kind,
}

/// Where a row comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kind {
    pub law: Law,
    pub scene: scene::Name,
    pub yardstick: Yardstick,
    /// Median time from the end of overload to the last refusal, ms.
    pub last_shed_ms: f64,
    /// Changes of state until the judged part ended.
    pub changes_before_end: f64,
    /// Share of the judged requests that were answered in time.
    pub in_time_ratio: f64,
}

impl Row {
    /// The medians of some runs.
    pub(crate) fn of(
        law: Law,
        scene: scene::Name,
        offered: f64,
        runs: &[Run],
        yardstick: Yardstick,
    ) -> Self {
        let middle = |of: fn(&Run) -> f64| median(runs.iter().map(of)).unwrap_or(f64::NAN);
        // A run without the value counts as worse than any with it.
        let worst_none = |of: fn(&Run) -> Option<f64>| {
            let values = runs.iter().map(|run| of(run).unwrap_or(f64::INFINITY));
            median(values).filter(|value| value.is_finite())
        };
        Self {
            law: law.name(),
            scene: scene.text(),
            offered,
            goodput_ratio: middle(|run| run.goodput_ratio),
            bound: middle(|run| run.bound),
            p50_ms: worst_none(|run| run.figures.p50_ms),
            p99_ms: worst_none(|run| run.figures.p99_ms),
            p99_first_s_ms: worst_none(|run| run.figures.first.p99_ms),
            p99_rest_ms: worst_none(|run| run.figures.rest.p99_ms),
            late_first_s: middle(|run| run.figures.first.late),
            late_rest: middle(|run| run.figures.rest.late),
            cpu_lost_s: middle(|run| run.cpu_lost_s),
            refused_ratio: middle(|run| run.figures.refused_ratio),
            first_shed_ms: worst_none(|run| run.figures.first_shed_ms),
            release_ms: worst_none(|run| run.release_ms),
            transitions: middle(|run| run.transitions),
            kind: Kind {
                law,
                scene,
                yardstick,
                last_shed_ms: middle(|run| run.figures.last_shed_ms),
                changes_before_end: middle(|run| run.changes_before_end),
                in_time_ratio: middle(|run| {
                    run.figures.goodput_qps / run.figures.offered_qps.max(f64::MIN_POSITIVE)
                }),
            },
        }
    }
}
