//! Plays a scene once and tells what came of it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::acting::Acting;
use super::{Beside, Callers, Setup};
use crate::agent::Agent;
use crate::calibrate::Yardstick;
use crate::figures::{Figures, Judged};
use crate::lab::{Guarded, Lab, Service};
use crate::law::Law;
use crate::load::{self, Phase, Record, Stream};
use crate::machine::group::Group;
use crate::machine::process::Process;
use crate::proxy;
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
    /// Those until the judged part ended.
    pub changes_before_end: f64,
    /// What was possible and not done in time in the judged part, as seconds of the service's CPU.
    pub cpu_lost_s: f64,
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
        law: law.inside(),
        group: group.as_ref(),
        agent: agent.as_ref(),
    };
    let services = services(lab, setup, &guarded)?;
    let _beside = setup
        .beside
        .map(|beside| start(lab, beside, group.as_ref()))
        .transpose()?;
    let first = services.first();
    let first = first.ok_or_else(|| io::Error::other("a scene without a service"))?;
    let proxy = law
        .proxy()
        .map(|proxy| proxy::Running::start(proxy, lab.load_cpu, first.address))
        .transpose()?;
    let in_front = proxy.as_ref().map(|proxy| proxy.address);
    let streams = streams(setup, &services, in_front, yardstick);
    let mut watch = None;
    let mut acting = None;
    let rules = agent.as_ref().map(Agent::further_rules);
    let records = load::generate(&streams, terms.seed, &lab.interrupt, |began: Instant| {
        let path = group.as_ref().map(Group::path);
        watch = agent
            .as_ref()
            .and_then(|agent| Watch::start(agent, path, began, terms.trace).ok());
        acting = Some(Acting::start(
            setup.acts.clone(),
            first.address,
            rules,
            began,
        ));
    })?;
    if let Some(acting) = acting {
        acting?.stop()?;
    }
    let seen = watch.map(Watch::stop);
    let own = first.stats()?;
    Ok(judge(
        &records,
        setup,
        yardstick,
        lab,
        &Laws {
            seen,
            rival_transitions: own.transitions,
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

/// The services that the scene asks, in their order.
fn services(lab: &Lab, setup: &Setup, guarded: &Guarded<'_>) -> io::Result<Vec<Service>> {
    let last = setup.callers.iter().map(|callers| callers.service).max();
    let numbers = 0..=last.unwrap_or(0);
    numbers
        .map(|number| {
            // Each service has its own resource; the first one's is in the rules of the scenes.
            let resource = if number == 0 {
                "lab".to_owned()
            } else {
                format!("lab{number}")
            };
            lab.service(&setup.shape, &resource, guarded)
        })
        .collect()
}

/// What the callers ask; those of the first service ask what is in front of it.
fn streams(
    setup: &Setup,
    services: &[Service],
    in_front: Option<SocketAddr>,
    yardstick: &Yardstick,
) -> Vec<Stream> {
    let capacity_qps = yardstick.capacity_qps * setup.share;
    let callers = setup.callers.iter();
    callers
        .filter_map(|callers| {
            let own = services.get(callers.service)?.address;
            let address = in_front.filter(|_proxy| callers.service == 0);
            Some(stream(callers, address.unwrap_or(own), setup, capacity_qps))
        })
        .collect()
}

fn stream(callers: &Callers, address: SocketAddr, setup: &Setup, capacity_qps: f64) -> Stream {
    let phase = |phase: &Phase| Phase {
        qps: phase.qps * capacity_qps,
        ..*phase
    };
    Stream {
        address,
        keep_alive: setup.shape.keeps_alive(),
        path: callers.path,
        slow: callers.slow,
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
    let (release_ms, transitions, before_end) = match &laws.seen {
        Some(seen) => (
            watch::release_ms(seen, end),
            watch::transitions(seen),
            watch::transitions(watch::until(seen, end)),
        ),
        None => (
            Some(figures.last_shed_ms),
            laws.rival_transitions,
            laws.rival_transitions,
        ),
    };
    let bound = yardstick.bound(figures.offered_qps / setup.share) * setup.share;
    let missing_qps = bound * yardstick.peak_qps - figures.goodput_qps;
    let count = |number: usize| tidegate_limits::number::double(number as u64);
    Run {
        goodput_ratio: figures.goodput_qps / yardstick.peak_qps,
        bound,
        figures,
        release_ms,
        transitions: count(transitions),
        changes_before_end: count(before_end),
        cpu_lost_s: (missing_qps * setup.judged.length_s() / yardstick.capacity_qps).max(0.0),
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
        Beside::Thief => {
            let group = lab.group("thief", None)?;
            let place = lab.place(group.as_ref());
            if let Some(group) = &group {
                group.allow_real_time()?;
            }
            let own = std::env::current_exe()?;
            let mut args: Vec<OsString> = ["-f", "50"].map(OsString::from).into();
            args.push(own.into_os_string());
            args.extend(["spin", "--share", "0.5"].map(OsString::from));
            let process = Process::start(&place, "chrt", args, [Stdio::null(), Stdio::inherit()])?;
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
