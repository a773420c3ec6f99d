//! The lab: where its parts run, and how they are started.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::de::DeserializeOwned;

use crate::agent::Agent;
use crate::ask;
use crate::law::Law;
use crate::machine::group::{Group, LoadGroup};
use crate::machine::interrupt::Interrupt;
use crate::machine::process::{Place, Process};
use crate::service::{Event, Kind, Stats};

/// Longest wait for an answer of an idle service.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Configuration that leaves the host without limits, and the lab's groups with the default ones.
pub(crate) const OWN_SCOPE: &str = "
[cpu]
enabled = false
[law.entry]
least_requests = 1000000.0
[law.tight]
slack_requests = 1000000.0
[law.cold]
entry_per_cpu = 1000000.0
tight_per_cpu = 1000000.0
[[scope]]
name = \"lab\"
cgroup = \"/tidegate-lab-*\"
[scope.cpu]
enabled = true
[scope.law.entry]
least_requests = 32.0
[scope.law.tight]
slack_requests = 8.0
[scope.law.cold]
entry_per_cpu = 32.0
tight_per_cpu = 16.0
";

/// What is the same for all runs.
#[derive(Debug)]
pub(crate) struct Lab {
    /// The agent's program.
    pub agent: PathBuf,
    /// CPU of the service, and of what a scene puts beside it.
    pub service_cpu: usize,
    /// CPU of the load and the agent.
    pub load_cpu: usize,
    /// Whether services get groups of their own.
    pub groups: bool,
    /// Lines of every agent's configuration.
    pub config: String,
    /// CPU time of a request.
    pub work: Duration,
    /// An answer after this is too late.
    pub deadline: Duration,
    pub interrupt: Interrupt,
}

/// A service to start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    pub kind: Kind,
    pub workers: u32,
    /// Quota of its group, CPUs.
    pub quota: Option<f64>,
    /// How its guard asks the agent.
    pub door: Door,
    /// Whether its requests take 1 ms or 500 ms of CPU time instead of all the same.
    pub bimodal: bool,
}

/// A way to ask the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Door {
    /// Shared memory.
    Memory,
    /// `gate.sock`.
    Gate,
    /// HTTP, on one connection.
    Http,
}

impl Door {
    /// The word on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Gate => "gate",
            Self::Http => "http",
        }
    }
}

/// CPU times of a bimodal service's requests, and one in how many is a long one.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(500);
const LONG_EACH: u32 = 100;

impl Shape {
    /// A service of this kind, without a quota.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            workers: 8,
            quota: None,
            door: Door::Memory,
            bimodal: false,
        }
    }

    /// Mean CPU time of a request, where one of the plain service takes so much.
    pub(crate) fn work(&self, plain: Duration) -> Duration {
        if self.bimodal {
            (SHORT * (LONG_EACH - 1) + LONG) / LONG_EACH
        } else {
            plain
        }
    }

    /// Whether its connections serve more than one request.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.kind != Kind::Accepting
    }
}

/// What guards a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guarded<'a> {
    pub law: Law,
    /// The group it runs in.
    pub group: Option<&'a Group>,
    /// The agent that it asks.
    pub agent: Option<&'a Agent>,
}

/// A running service.
#[derive(Debug)]
pub(crate) struct Service {
    /// Ends when it is dropped.
    _process: Process,
    pub address: SocketAddr,
}

impl Lab {
    /// A group for the services of a run; `None` where the lab may not make any.
    ///
    /// # Errors
    /// The kernel does not take its settings.
    pub(crate) fn group(&self, purpose: &str, quota: Option<f64>) -> io::Result<Option<Group>> {
        if !self.groups {
            return Ok(None);
        }
        let group = Group::make(purpose, self.service_cpu)?;
        if let Some(cpus) = quota {
            group.limit(cpus)?;
        }
        Ok(Some(group))
    }

    /// Moves the lab, and with it the load and the agents, into a group of its own, if it may make any.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub(crate) fn load_group(&self) -> io::Result<Option<LoadGroup>> {
        if !self.groups {
            return Ok(None);
        }
        LoadGroup::enter(self.load_cpu).map(Some)
    }

    /// The service's CPU, in a group.
    pub(crate) fn place(&self, group: Option<&Group>) -> Place {
        Place {
            cpu: self.service_cpu,
            group: group.map_or_else(Vec::new, |group| group.dirs().into()),
        }
    }

    /// An agent on the CPU of the load.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn agent(&self, rules: &str) -> io::Result<Agent> {
        Agent::start(&self.agent, self.load_cpu, rules, &self.config)
    }

    /// Starts a service and waits until it listens.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn service(
        &self,
        shape: &Shape,
        resource: &str,
        guarded: &Guarded<'_>,
    ) -> io::Result<Service> {
        let mut args: Vec<String> = ["service", "--kind", shape.kind.name()]
            .map(str::to_owned)
            .into();
        let mut add = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
        add("--workers", shape.workers.to_string());
        if shape.bimodal {
            add("--work-us", SHORT.as_micros().to_string());
            add("--long-us", LONG.as_micros().to_string());
            add("--long-each", LONG_EACH.to_string());
        } else {
            add("--work-us", self.work.as_micros().to_string());
        }
        add("--door", shape.door.name().to_owned());
        add("--law", guarded.law.name().to_owned());
        add("--cpu", self.service_cpu.to_string());
        add("--resource", resource.to_owned());
        if let Some(agent) = guarded.agent {
            add("--runtime-dir", agent.runtime_dir().display().to_string());
        }
        let (process, line) = Process::of_lab(&self.place(guarded.group), &args)?;
        let address = line.parse().map_err(io::Error::other)?;
        Ok(Service {
            _process: process,
            address,
        })
    }
}

impl Service {
    /// What it has done.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) fn stats(&self) -> io::Result<Stats> {
        ask(self.address, "/stats")
    }
}

/// Tells the service at an address what happens to it.
///
/// # Errors
/// It does not answer.
pub(crate) fn happen(address: SocketAddr, event: Event) -> io::Result<()> {
    ask::<serde::de::IgnoredAny>(address, event.path()).map(drop)
}

/// What a service answers in JSON.
fn ask<T: DeserializeOwned>(address: SocketAddr, path: &str) -> io::Result<T> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    ask::json(&mut stream, path)
}

/// Whether the lab may make control groups; if not, why.
///
/// # Errors
/// It may not.
pub(crate) fn try_groups(cpu: usize) -> io::Result<()> {
    if !Path::new("/sys/fs/cgroup/cpuset/cgroup.procs").exists() {
        return Err(io::Error::other(
            "there is no cgroup v1 cpuset hierarchy under /sys/fs/cgroup",
        ));
    }
    Group::make("try", cpu).map(drop)
}
