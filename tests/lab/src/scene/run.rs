//! Plays a scene once and tells what came of it.

use std::fs;
use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Beside, Callers, Setup};
use crate::calibrate::Yardstick;
use crate::figures::{Figures, Judged};
use crate::lab::{Guarded, Lab, Service};
use crate::law::Law;
use crate::load::{self, Phase, Record, Stream};
use crate::machine::group::Group;
use crate::machine::process::Process;
use crate::watch::{self, Seen, Watch};

/// The JVM's program; its launcher compiles it.
const COLLECTING: &str = include_str!("Collecting.java");

/// What came of a scene.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// Goodput ÷ peak.
    pub goodput_ratio: f64,
    /// The most that was possible, ÷ peak.
    pub bound: f64,
    pub figures: Figures,
    /// From the end of the judged part until the law was healthy, or for a law without states until
    /// its last refusal, ms; `None` if that did not come.
    pub release_ms: Option<f64>,
    /// Changes of the law's state in all of the load.
    pub transitions: f64,
}

/// Something beside the services; it ends when it is dropped, the process before its files.
#[derive(Debug)]
struct Running {
    _process: Process,
    _group: Option<Group>,
    _files: Option<TempDir>,
}

/// Plays a scene.
///
/// # Errors
/// A part does not start or breaks, or the lab was told to end.
pub(crate) fn run(
    lab: &Lab,
    law: Law,
    setup: &Setup,
    yardstick: &Yardstick,
    terms: &Playing,
) -> io::Result<Run> {
    let mut agent = None;
    if law == Law::Adaptive {
        agent = Some(lab.agent(&setup.rules)?);
    }
    let group = lab.group("service", setup.shape.quota)?;
    let guarded = Guarded {
        law,
        group: group.as_ref(),
        agent: agent.as_ref(),
    };
    let mut services = Vec::new();
    let last = setup.callers.iter().map(|callers| callers.service).max();
    for number in 0..=last.unwrap_or(0) {
        // Each service has its own resource; the first one's is in the rules of the scenes.
        let resource = if number == 0 {
            "lab".to_owned()
        } else {
            format!("lab{number}")
        };
        services.push(lab.service(&setup.shape, &resource, &guarded)?);
    }
    let _beside = setup
        .beside
        .map(|beside| start(lab, beside, group.as_ref()))
        .transpose()?;
    let capacity_qps = yardstick.capacity_qps * setup.share;
    let streams: Vec<Stream> = setup
        .callers
        .iter()
        .filter_map(|callers| {
            let service = services.get(callers.service)?;
            Some(stream(callers, service, setup, capacity_qps))
        })
        .collect();
    let mut watch = None;
    let records = load::generate(&streams, terms.seed, &lab.interrupt, |began: Instant| {
        let path = group.as_ref().map(Group::path);
        watch = agent
            .as_ref()
            .and_then(|agent| Watch::start(agent, path, began, terms.trace).ok());
    })?;
    let seen = watch.map(Watch::stop);
    let own = services.first().map(Service::stats).transpose()?;
    Ok(judge(
        &records,
        setup,
        yardstick,
        lab,
        &Laws {
            seen,
            rival_transitions: own.map_or(0, |stats| stats.transitions),
        },
    ))
}

/// How a scene is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Playing {
    pub seed: u64,
    /// Whether each look at the scopes is written to standard error.
    pub trace: bool,
}

/// What is known of the law's own states.
struct Laws {
    /// Looks at the agent's scopes; `None` for a rival.
    seen: Option<Vec<Seen>>,
    rival_transitions: usize,
}

fn stream(callers: &Callers, service: &Service, setup: &Setup, capacity_qps: f64) -> Stream {
    let phase = |phase: &Phase| Phase {
        qps: phase.qps * capacity_qps,
        ..*phase
    };
    Stream {
        address: service.address,
        keep_alive: setup.shape.keeps_alive(),
        path: callers.path,
        slow_share: callers.slow_share,
        phases: callers.phases.iter().map(phase).collect(),
        retry: callers.retry,
    }
}

fn judge(records: &[Record], setup: &Setup, yardstick: &Yardstick, lab: &Lab, laws: &Laws) -> Run {
    let judged = Judged {
        stream: 0,
        with_slow: setup.with_slow,
    };
    let figures = Figures::of(records, judged, setup.judged, lab.deadline.as_secs_f64());
    let end = Duration::from_secs_f64(setup.judged.until_s);
    let (release_ms, transitions) = match &laws.seen {
        Some(seen) => (watch::release_ms(seen, end), watch::transitions(seen)),
        None => (Some(figures.last_shed_ms), laws.rival_transitions),
    };
    Run {
        goodput_ratio: figures.goodput_qps / yardstick.peak_qps,
        bound: yardstick.bound(figures.offered_qps / setup.share) * setup.share,
        figures,
        release_ms,
        transitions: tidegate_limits::number::double(transitions as u64),
    }
}

/// Starts what a scene puts beside the services.
fn start(lab: &Lab, beside: Beside, group: Option<&Group>) -> io::Result<Running> {
    match beside {
        Beside::Neighbour => {
            let group = lab.group("neighbour", None)?;
            let place = lab.place(group.as_ref());
            let (process, _ready) = Process::of_lab(&place, &["spin".to_owned()])?;
            Ok(Running {
                _process: process,
                _group: group,
                _files: None,
            })
        }
        Beside::CollectingJvm => {
            let files = TempDir::with_prefix("tidegate-lab-")?;
            let source = files.path().join("Collecting.java");
            fs::write(&source, COLLECTING)?;
            let args = [
                "-Xmx64m".into(),
                "-XX:+UseSerialGC".into(),
                source.into_os_string(),
            ];
            let place = lab.place(group);
            let process = Process::start(&place, "java", args, [Stdio::null(), Stdio::null()])?;
            Ok(Running {
                _process: process,
                _group: None,
                _files: Some(files),
            })
        }
    }
}
