//! `tidegate doctor`: every signal of this machine, or why it is missing and what would help.
//!
//! It runs the control loop on no pages for a few seconds, so that it shows what an agent would
//! measure here, whether one runs or not. One that runs is asked which of the kernel's programs it uses.

mod checks;
mod programs;
mod running;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde::Serialize;
use tidegate_abi::signal::SignalId;

use self::checks::Check;
use self::programs::Kernel;
use self::running::Running;
use super::output::{Failure, say, say_json};
use super::place::Surroundings;
use crate::config::Config;
use crate::control::{Driver, Handle, Plan, ScopeSnapshot, Snapshot, Triggers, WaiterRung, start};
use crate::ebpf::{self, ProgramReport, TickEnd};
use crate::procfs::{NoValue, Roots, readable};
use crate::report::signal::SignalReport;
use crate::report::threads::{self, ThreadsReport};
use crate::rule_source::check;
use crate::signal::{
    AcceptQueues, Pressure, PressureTriggers, Sampler, TriggerForm, TriggerRefusal,
};
use crate::words::{many, paragraph, signal};

/// How long it looks at least: rates need two samples, throttling some periods.
const LOOK: Duration = Duration::from_secs(3);
/// How long it looks at most: with many threads two looks at all of them take longer.
const LONG_LOOK: Duration = Duration::from_secs(15);
/// Longest that a tick may be late before the machine is too busy to say anything.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate doctor
  tidegate doctor -v                   every signal of every scope, too
  tidegate doctor --json | jq '.scopes[] | {name, signals}'

Exit codes: 0 nothing needs doing, 1 something needs doing, 2 wrong usage.")]
pub(super) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show the value of every signal and the threads of each scope
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
    /// Configuration file to look at [default: the installed file, else the built-in defaults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory to read in place of /proc
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    proc_root: PathBuf,
    /// Directory to read in place of /sys/fs/cgroup
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    cgroup_root: PathBuf,
    /// Directory of the sockets of the agent to ask
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    checks: Vec<Check>,
    rungs: Rungs,
    scopes: Vec<Scope>,
}

/// Ladders of the whole agent.
#[derive(Debug, Serialize)]
struct Rungs {
    kernel: Kernel,
    /// The kernel's programs of an agent that runs.
    running_agent: Running,
    clock: Rung,
    sampler: Rung,
    accept_queues: Rung,
    /// What lets a tick come early, by what tasks wait for.
    psi_triggers: BTreeMap<&'static str, Rung>,
}

/// The step of a ladder in use, and what would give a better one.
#[derive(Debug, Serialize)]
struct Rung {
    #[serde(rename = "rung")]
    name: &'static str,
    /// Why there is no better one, where the kernel said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Scope {
    name: String,
    cgroup: Option<String>,
    waiters: Rung,
    /// What is said of CPUs that are declared for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_cpus: Option<String>,
    signals: BTreeMap<&'static str, SignalReport>,
    /// Its threads by what their names begin with, those that used most CPU.
    threads: Vec<ThreadsReport>,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    // Before its own programs add to the load.
    let running = Running::ask(options.runtime_dir.as_deref());
    let surroundings = Surroundings::here();
    let given = surroundings.config(options.config.clone(), None);
    let report = check::given(&given);
    // What is wrong in it is told; the rest can be looked at all the same.
    let config = given.load().map(|loaded| loaded.config).unwrap_or_default();
    let sockets = options.runtime_dir.as_deref();
    let state = surroundings.state(None, sockets);
    let mut checks = checks::all(&config, &report, &config.rules.dir, sockets, &state);
    let (snapshot, report) = look(options, &config)?;
    checks.extend(checks::scopes(&snapshot));
    let to_do = checks::to_do(&checks);
    let mut findings = Findings::of(&snapshot, &report, running);
    findings.checks = checks;
    if options.json {
        say_json(serde_json::to_string(&findings).map_err(Failure::of)?);
    } else {
        let text = findings.text(options.verbose).map_err(Failure::of)?;
        say(text.trim_end());
    }
    match to_do {
        0 => Ok(()),
        _ => Err(Failure::Told(1)),
    }
}

/// Lets the control loop tick for a while.
fn look(options: &Options, config: &Config) -> Result<(Snapshot, ProgramReport), Failure> {
    let roots = Roots {
        proc: options.proc_root.clone(),
        cgroup: options.cgroup_root.clone(),
    };
    let triggers = PressureTriggers::arm(config.signals.psi_triggers, &roots);
    let settings = config.ebpf.settings(config.pages.max_scopes);
    let (programs, tick_end) = ebpf::start(settings, &roots).map_err(Failure::of)?;
    let (driver, handle) = driver(roots, tick_end, config);
    let (ticked, ticks) = sync_channel(1);
    let ticking = start(driver, triggers, config.tick, move |_late| {
        // Room for one is enough: who waits for ticks takes each.
        let _full = ticked.try_send(());
    })
    .map_err(Failure::of)?;
    let is_settled = || programs.report().settled;
    let is_measured = || !handle.snapshot().scopes.iter().any(is_begun_only);
    watch(&ticks, config.tick, is_settled, is_measured)?;
    ticking.stop();
    let report = programs.report();
    programs.stop();
    Ok((handle.snapshot(), report))
}

/// Takes ticks until everything is measured, but not without end.
fn watch(
    ticks: &Receiver<()>,
    length: Duration,
    is_settled: impl Fn() -> bool,
    is_measured: impl Fn() -> bool,
) -> Result<(), Failure> {
    let ticks_of = |look: Duration| look.as_millis().div_ceil(length.as_millis().max(1));
    let (least, most) = (ticks_of(LOOK), ticks_of(LONG_LOOK));
    let mut tick = 0;
    // The ticks count from when it is known which programs run.
    while tick <= most {
        tick = if is_settled() {
            tick.saturating_add(1)
        } else {
            0
        };
        let late = |_late| Failure::Failed("the sampler thread does not tick".to_owned());
        ticks.recv_timeout(PATIENCE).map_err(late)?;
        if tick >= least && is_measured() {
            break;
        }
    }
    Ok(())
}

fn driver(roots: Roots, tick_end: TickEnd, config: &Config) -> (Box<Driver>, Handle) {
    let mut sampler = Sampler::new(roots);
    sampler.take_kernel(tick_end);
    Driver::new(sampler, Vec::new(), Plan::of(config))
}

/// Whether the threads of a scope were not all looked at twice yet.
fn is_begun_only(scope: &ScopeSnapshot) -> bool {
    let told = scope.readings.get(SignalId::RunqueueWait).get();
    told.is_err_and(|missing| matches!(missing.fault, NoValue::FirstSample | NoValue::NotSampled))
}

impl Findings {
    fn of(snapshot: &Snapshot, report: &ProgramReport, running_agent: Running) -> Self {
        let better_clock = "a processor with a constant counter that the kernel's clock uses";
        let better_clock = (!snapshot.uses_counter).then_some(better_clock);
        Self {
            checks: Vec::new(),
            rungs: Rungs {
                kernel: Kernel::of(report),
                running_agent,
                clock: Rung::new(snapshot.clock(), better_clock),
                sampler: Rung::new(snapshot.scheduling.name(), snapshot.scheduling.better()),
                accept_queues: accept_queues(),
                psi_triggers: psi_triggers(&snapshot.triggers),
            },
            scopes: snapshot.scopes.iter().map(Scope::of).collect(),
        }
    }

    fn text(&self, verbose: bool) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        checks::write(&mut text, &self.checks)?;
        writeln!(text)?;
        let Rungs {
            kernel,
            running_agent,
            clock,
            sampler,
            accept_queues,
            psi_triggers,
        } = &self.rungs;
        kernel.write(&mut text)?;
        running_agent.write(&mut text)?;
        for (name, rung) in [
            ("clock", clock),
            ("sampler scheduling", sampler),
            ("accept queues", accept_queues),
        ] {
            rung.write(&mut text, name)?;
        }
        for (name, rung) in psi_triggers {
            rung.write(&mut text, &format!("trigger window {name}"))?;
        }
        for scope in &self.scopes {
            scope.write(&mut text, verbose)?;
        }
        checks::write_summary(&mut text, &self.checks)?;
        Ok(text)
    }
}

/// Where the accept queues of services that show their listeners come from here.
fn accept_queues() -> Rung {
    let heard = AcceptQueues::open().and_then(|mut queues| queues.each(|_cookie, _waiting| {}));
    match heard {
        Ok(()) => Rung::new("sock_diag", None),
        Err(_no_answer) => Rung::new(
            "in flight alone",
            Some("a kernel with INET_DIAG, and a sandbox that lets AF_NETLINK sockets be"),
        ),
    }
}

fn psi_triggers(triggers: &Triggers) -> BTreeMap<&'static str, Rung> {
    let rung = |state: &Result<TriggerForm, TriggerRefusal>| match state {
        Ok(form) => Rung::new(form.name(), form.better()),
        Err(refusal) => Rung {
            why: Some(refusal.to_string()),
            ..Rung::new("none", Some(refusal.remedy()))
        },
    };
    let names = Pressure::ALL.map(Pressure::name).into_iter();
    names.zip(triggers.states.iter().map(rung)).collect()
}

impl Rung {
    fn new(name: &'static str, better: Option<&'static str>) -> Self {
        Self {
            name,
            why: None,
            better,
        }
    }

    fn write(&self, text: &mut String, name: &str) -> std::fmt::Result {
        let why = self.why.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let rung = match self.name {
            "ordinary" => "normal",
            "ebpf" => "eBPF",
            name => name.trim_end_matches(" windows"),
        };
        paragraph(text, &format!("{name:<24}"), &format!("{rung}{why}"))?;
        match self.better {
            Some(better) => paragraph(
                text,
                &format!("{:<24}", ""),
                &format!("for a better one: {better}"),
            ),
            None => Ok(()),
        }
    }
}

impl Scope {
    fn of(scope: &ScopeSnapshot) -> Self {
        let rung = WaiterRung::of(&scope.readings);
        let signals = scope.readings.iter();
        Self {
            name: scope.name.to_string(),
            cgroup: scope.cgroup.as_ref().map(|path| readable(path)),
            waiters: Rung::new(
                rung.name(),
                match scope.readings.get(SignalId::RunqueueWait).get() {
                    Ok(_measured) => None,
                    Err(missing) => Some(missing.remedy(SignalId::RunqueueWait)),
                },
            ),
            declared_cpus: scope.declared_cpus.map(|declared| declared.to_string()),
            signals: signals
                .map(|(id, reading)| (id.name(), SignalReport::of(id, reading)))
                .collect(),
            threads: threads::of(scope),
        }
    }

    fn write(&self, text: &mut String, verbose: bool) -> std::fmt::Result {
        writeln!(text, "\nscope {}", self.name)?;
        self.waiters.write(text, "source of waiting tasks")?;
        if let Some(declared) = &self.declared_cpus {
            paragraph(text, "  ", declared)?;
        }
        let mut measured = 0_u64;
        // Signals that are missing for the same reason and come by the same remedy.
        let mut missing: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (name, told) in &self.signals {
            match told {
                SignalReport::Measured { value, unit } => {
                    measured = measured.saturating_add(1);
                    if verbose {
                        writeln!(text, "  {name:<20} {}", signal(*value, unit))?;
                    }
                }
                SignalReport::Missing { not_measured, .. } if is_elsewhere(not_measured) => {}
                SignalReport::Missing {
                    not_measured,
                    remedy,
                } => {
                    missing
                        .entry((not_measured, remedy))
                        .or_default()
                        .push(name);
                }
            }
        }
        if !verbose {
            writeln!(
                text,
                "  {} measured (-v shows them)",
                many(measured, "signal")
            )?;
        }
        for ((not_measured, remedy), names) in &missing {
            let told = format!("{}: {not_measured}", names.join(", "));
            paragraph(text, "  not measured  ", &told)?;
            paragraph(text, "    to have it  ", remedy)?;
        }
        for threads in self.threads.iter().filter(|_| verbose) {
            writeln!(text, "  {threads}")?;
        }
        Ok(())
    }
}

/// Whether a signal is of another kind of scope, so that it is not missing here.
fn is_elsewhere(not_measured: &str) -> bool {
    let faults = [NoValue::HostOnly, NoValue::GroupOnly];
    faults
        .iter()
        .any(|fault| not_measured.ends_with(&fault.to_string()))
}
