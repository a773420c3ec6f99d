//! A whole measurement: yardsticks first, then every law in every scene at every load.

use std::io::{self, Write as _};
use std::process::Command;
use std::time::Duration;

use crate::calibrate::Yardstick;
use crate::lab::{Lab, Shape};
use crate::law::Law;
use crate::options::Measure;
use crate::output::table;
use crate::proxy;
use crate::report::{Report, Row};
use crate::scene::{self, Playing, Terms};
use crate::service::Kind;

/// Longest load of a yardstick.
const YARDSTICK: Duration = Duration::from_secs(4);
/// Shortest time in which a rate can be told.
const YARDSTICK_LEAST: Duration = Duration::from_secs(1);

/// Runs of one law in one scene.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub law: Law,
    pub scene: scene::Name,
    pub offered: Vec<f64>,
    pub seeds: u64,
    pub length: Duration,
}

/// The parts that the command line asks for.
pub(crate) fn parts(measure: &Measure) -> Vec<Part> {
    let mut parts = Vec::new();
    for scene in measure.scene.iter().copied() {
        let rivals = measure.rival.iter().map(|proxy| proxy.law());
        for law in measure.law.iter().copied().chain(rivals) {
            let given = Some(&measure.offered).filter(|offered| !offered.is_empty());
            parts.push(Part {
                law,
                scene,
                offered: given.map_or_else(|| scene.loads().into(), Clone::clone),
                seeds: measure.seeds,
                length: Duration::from_secs(measure.seconds),
            });
        }
    }
    parts
}

/// Measures all parts. Progress goes to standard error.
///
/// # Errors
/// A part does not start or breaks, or the lab was told to end.
pub(crate) fn measure(lab: &Lab, parts: &[Part], trace: bool) -> io::Result<Report> {
    let longest = parts
        .iter()
        .map(|part| part.length)
        .max()
        .unwrap_or_default();
    let mut yardsticks = Yardsticks {
        known: Vec::new(),
        length: longest.clamp(YARDSTICK_LEAST, YARDSTICK),
    };
    let plain = yardsticks.of(lab, &Shape::of(Kind::Pool))?;
    let mut runs = Vec::new();
    for part in parts {
        if let Some(why) = why_not(lab, part.scene) {
            tell(&format!("NOT RUN: {}: {why}", part.scene.text()));
            continue;
        }
        if let Some(Err(why)) = part.law.proxy().map(proxy::program) {
            tell(&format!("NOT RUN: {}: {why}", part.law.name()));
            continue;
        }
        let yardstick = yardsticks.of(lab, &part.scene.shape())?;
        for offered in part.offered.iter().copied() {
            let row = row(lab, part, offered, yardstick, trace)?;
            tell(&table::line(&row));
            runs.push(row);
        }
    }
    Ok(Report {
        capacity_qps: plain.capacity_qps,
        refusal_cost_ratio: plain.refusal_cost_ratio,
        runs,
    })
}

fn row(lab: &Lab, part: &Part, offered: f64, yardstick: Yardstick, trace: bool) -> io::Result<Row> {
    let setup = part.scene.setup(&Terms {
        offered,
        length: part.length,
    });
    let mut runs = Vec::new();
    for number in 0..part.seeds {
        let playing = Playing {
            // Far apart: the streams of a run count on from its seed.
            seed: 1000 * (number + 1),
            trace,
        };
        runs.push(scene::run(lab, part.law, &setup, &yardstick, &playing)?);
    }
    Ok(Row::of(part.law, part.scene, offered, &runs, yardstick))
}

/// Why a scene cannot be played here.
fn why_not(lab: &Lab, scene: scene::Name) -> Option<&'static str> {
    if scene.needs_groups() && !lab.groups {
        return Some("it needs control groups, that is root and cgroup v1");
    }
    let java = || {
        Command::new("java")
            .arg("-version")
            .output()
            .is_ok_and(|out| out.status.success())
    };
    if scene.needs_java() && !java() {
        return Some("it needs java");
    }
    let chrt = || {
        let tried = Command::new("chrt").args(["-f", "50", "true"]).output();
        tried.is_ok_and(|out| out.status.success())
    };
    (scene.needs_real_time() && !chrt())
        .then_some("it needs chrt, and may not schedule in real time")
}

/// Yardsticks by shape.
struct Yardsticks {
    known: Vec<(Shape, Yardstick)>,
    length: Duration,
}

impl Yardsticks {
    fn of(&mut self, lab: &Lab, shape: &Shape) -> io::Result<Yardstick> {
        if let Some((_shape, known)) = self.known.iter().find(|(known, _)| known == shape) {
            return Ok(*known);
        }
        let measured = Yardstick::measure(lab, shape, self.length)?;
        let name = shape.kind.name();
        let quota = shape
            .quota
            .map_or(String::new(), |cpus| format!(" with {cpus} CPUs"));
        let name = format!(
            "{name} (asks by {}{})",
            shape.door.name(),
            if shape.bimodal { ", bimodal" } else { "" }
        );
        tell(&format!(
            "{name}{quota}: capacity {:.1}/s, refusal cost {:.2} %, peak {:.1}/s with p99 {:.1} ms",
            measured.capacity_qps,
            measured.refusal_cost_ratio * 100.0,
            measured.peak_qps,
            measured.peak_p99_ms
        ));
        self.known.push((*shape, measured));
        Ok(measured)
    }
}

/// Writes a line of progress to standard error.
pub(crate) fn tell(line: &str) {
    // Progress that nobody reads is no reason to end.
    let _told = writeln!(io::stderr(), "{line}");
}
