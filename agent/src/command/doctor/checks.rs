//! What an operator must put right: the agent, its configuration and rules, the port of the metrics, the disk.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::command::output::Failure;
use crate::command::status;
use crate::config::Config;
use crate::control::{DeclaredCpus, Snapshot};
use crate::report::facts::RulesReport;
use crate::report::status::{AgentReport, StatusReport};
use crate::rule_source::check::CheckReport;
use crate::words::{many, paragraph, span};

/// Longest wait for the port of the metrics.
const PORT_WITHIN: Duration = Duration::from_secs(1);

/// Something that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    name: &'static str,
    /// Whether nothing needs doing.
    ok: bool,
    found: String,
}

impl Check {
    fn new(name: &'static str, ok: bool, found: impl Into<String>) -> Self {
        let found = found.into();
        Self { name, ok, found }
    }
}

/// All of them. `report` is what a check of the configuration found.
pub(super) fn all(
    config: &Config,
    report: &CheckReport,
    rules_dir: &Path,
    runtime_dir: Option<&Path>,
    state: &Path,
) -> Vec<Check> {
    let told = status::told(runtime_dir, "/v1/status");
    let told = told.and_then(|body| status::read::<StatusReport>(&body));
    let told = told.map(|status| status.agent);
    // An agent may have been started with another port or directory than those of the configuration.
    let metrics = port(config, told.as_ref().ok());
    let of_agent = told.as_ref().ok().and_then(|agent| agent.rules.as_ref());
    // An older agent does not tell which.
    let of_agent = of_agent.filter(|rules| !rules.directory.is_empty());
    vec![
        agent(told.as_ref()),
        configuration(report),
        rules(of_agent.map_or(rules_dir, |rules| Path::new(&rules.directory))),
        metrics,
        disk(config, state),
    ]
}

fn agent(told: Result<&AgentReport, &Failure>) -> Check {
    let name = "agent";
    let agent = match told {
        Ok(agent) => agent,
        Err(Failure::Failed(why) | Failure::Invalid(why)) => {
            return Check::new(name, false, why.as_str());
        }
        Err(Failure::Told(_code)) => return Check::new(name, false, "no agent answers"),
    };
    let AgentReport {
        pid,
        uptime_s,
        tick_ms,
        tick_late_p99_ms: late,
        rules,
        ..
    } = agent;
    let since = span(*uptime_s);
    if let Some(RulesReport {
        reload_ok: false, ..
    }) = rules
    {
        let found = "the last reload was refused, the set before is in force; put right what \
                     `tidegate check` tells";
        return Check::new(name, false, found);
    }
    if let Some(late) = late.filter(|late| late >= tick_ms) {
        let found = format!(
            "ticks of {tick_ms:.0} ms come {late:.0} ms late; give the agent real-time scheduling \
             (LimitRTPRIO in its unit)"
        );
        return Check::new(name, false, found);
    }
    let rules = rules.as_ref().map_or_else(String::new, |rules| {
        format!(", {} in force", many(rules.count, "rule"))
    });
    Check::new(name, true, format!("answers: pid {pid}, up {since}{rules}"))
}

fn configuration(report: &CheckReport) -> Check {
    let (name, counts) = ("configuration", report.counts());
    match report.faults.first() {
        Some(first) => Check::new(name, false, format!("{counts}; the first: {first}")),
        None if report.warnings.is_empty() => Check::new(name, true, "valid, with its rules"),
        None => Check::new(
            name,
            true,
            format!("valid ({counts}; `tidegate check` lists them)"),
        ),
    }
}

/// Without rules the agent protects by the machine's state alone, which is no fault.
fn rules(directory: &Path) -> Check {
    let (name, shown) = ("rules", directory.display());
    match std::fs::read_dir(directory) {
        Ok(entries) => {
            let files = u64::try_from(entries.count()).unwrap_or(u64::MAX);
            Check::new(name, true, format!("{shown} has {}", many(files, "file")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Check::new(
            name,
            true,
            format!("{shown} is not there, so no rule is in force"),
        ),
        Err(error) => {
            let found = format!("{shown}: {error}; let the agent's user read and enter it");
            Check::new(name, false, found)
        }
    }
}

/// The port of the metrics: where `running` has it, or where this configuration would.
fn port(config: &Config, running: Option<&AgentReport>) -> Check {
    let (name, http) = ("metrics", &config.http);
    let own = http.metrics_enabled.then_some(http.metrics_listen);
    let Some(address) = running.map_or(own, |agent| agent.metrics_listen) else {
        return Check::new(name, true, "on the Unix socket alone");
    };
    if running.is_some() {
        return served(name, address);
    }
    match TcpListener::bind(address) {
        Ok(_free) => Check::new(name, true, format!("{address} is free")),
        Err(error) => Check::new(
            name,
            false,
            format!("{address}: {error}; choose another http.metrics_listen"),
        ),
    }
}

fn served(name: &'static str, address: SocketAddr) -> Check {
    match TcpStream::connect_timeout(&address, PORT_WITHIN) {
        Ok(_answers) => Check::new(name, true, format!("{address} answers")),
        Err(error) => Check::new(
            name,
            false,
            format!("{address} does not answer ({error}), though the agent runs"),
        ),
    }
}

/// The scopes of the configuration; `None` where it names none. A pattern need not have a group.
pub(super) fn scopes(snapshot: &Snapshot) -> Option<Check> {
    let name = "scopes";
    let (mut faults, mut none_fits) = (Vec::new(), 0_usize);
    for scope in &snapshot.configured {
        match scope.without_group() {
            Some(without) if without.is_one_group() => {
                faults.push(format!("{}: {without}", scope.name));
            }
            Some(_pattern) => none_fits = none_fits.saturating_add(1),
            None => {}
        }
    }
    for scope in &snapshot.scopes {
        let conflict = scope.declared_cpus.filter(DeclaredCpus::conflicts);
        faults.extend(conflict.map(|declared| format!("{}: {declared}", scope.name)));
    }
    let all = u64::try_from(snapshot.configured.len()).unwrap_or(u64::MAX);
    match (all, faults.is_empty(), none_fits) {
        (0, ..) => None,
        (_, false, _) => Some(Check::new(name, false, faults.join("; "))),
        (_, true, 0) => {
            let found = format!("{} with a group each", many(all, "configured scope"));
            Some(Check::new(name, true, found))
        }
        (_, true, none) => {
            let found = format!(
                "{}, no group fits {none} now",
                many(all, "configured scope")
            );
            Some(Check::new(name, true, found))
        }
    }
}

fn disk(config: &Config, state: &Path) -> Check {
    let name = "disk";
    if !config.recording.enabled {
        return Check::new(name, true, "nothing is recorded");
    }
    let needed = config.recording.size_mib;
    // What is not there yet comes to lie where its nearest parent is.
    let there = state.ancestors().find(|path| path.exists());
    let free = there.and_then(|path| rustix::fs::statvfs(path).ok());
    let free = free.map(|room| room.f_bavail.saturating_mul(room.f_frsize) >> 20);
    let shown = state.display();
    match free {
        Some(free) if free < needed => Check::new(
            name,
            false,
            format!(
                "{shown} has {free} MiB free, the recording takes up to {needed} MiB (recording.size_mib)"
            ),
        ),
        Some(free) => Check::new(
            name,
            true,
            format!("{shown} has {free} MiB free, the recording takes up to {needed}"),
        ),
        None => Check::new(
            name,
            false,
            format!("{shown} cannot be looked at; name another --state-dir"),
        ),
    }
}

/// Those that need doing.
pub(super) fn to_do(checks: &[Check]) -> usize {
    checks.iter().filter(|check| !check.ok).count()
}

/// Writes them in lines.
pub(super) fn write(text: &mut String, checks: &[Check]) -> std::fmt::Result {
    for Check { name, ok, found } in checks {
        let mark = if *ok { "ok" } else { "!!" };
        paragraph(text, &format!("{mark}  {name:<15}"), found)?;
    }
    Ok(())
}

/// Writes what they come to.
pub(super) fn write_summary(text: &mut String, checks: &[Check]) -> std::fmt::Result {
    let names = checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name);
    let names = names.collect::<Vec<_>>().join(", ");
    match to_do(checks) {
        0 => writeln!(text, "\nnothing needs doing"),
        1 => writeln!(text, "\n1 thing needs doing: {names}"),
        more => writeln!(text, "\n{more} things need doing: {names}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::fault::Fault;

    #[test]
    fn field_o11_what_needs_doing_is_told_and_counted() {
        let report = CheckReport {
            faults: vec![Fault::of_file(
                "/etc/tidegate/tidegate.toml",
                "no such file",
                "",
                "create it",
            )],
            ..CheckReport::default()
        };
        let running = agent_of(0.4, true);
        let mut config = Config::default();
        config.recording.size_mib = u64::MAX;
        let directory = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        config.http.metrics_listen = taken.local_addr().unwrap();
        let checks = [
            agent(Ok(&running)),
            configuration(&report),
            rules(&directory.path().join("nowhere")),
            port(&config, None),
            disk(&config, directory.path()),
        ];
        let oks = checks.iter().map(|check| check.ok).collect::<Vec<_>>();
        assert_eq!(oks, [true, false, true, false, false]);
        let mut text = String::new();
        write(&mut text, &checks).unwrap();
        write_summary(&mut text, &checks).unwrap();
        for line in [
            "ok  agent          answers: pid 7, up 2 h 5 min, 8 rules in force\n",
            "!!  configuration  1 error, 0 warnings; the first: /etc/tidegate/tidegate.toml:\n",
            "\n3 things need doing: configuration, metrics, disk\n",
        ] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
        let mut agent = agent_of(0.4, true);
        assert!(port(&config, Some(&agent)).ok, "an agent without the port");
        agent.metrics_listen = Some(config.http.metrics_listen);
        assert!(port(&config, Some(&agent)).ok, "somebody answers there");
    }

    fn agent_of(tick_late_p99_ms: f64, reload_ok: bool) -> AgentReport {
        AgentReport {
            pid: 7,
            uptime_s: 7512.0,
            tick_ms: 100.0,
            tick_late_p99_ms: Some(tick_late_p99_ms),
            rules: Some(RulesReport {
                count: 8,
                reload_ok,
                ..RulesReport::default()
            }),
            ..AgentReport::default()
        }
    }

    #[test]
    fn field_o11_an_agent_that_is_late_or_was_refused_a_reload_needs_doing() {
        let agent_with = |late, reload_ok| agent(Ok(&agent_of(late, reload_ok)));
        assert!(!agent_with(250.0, true).ok);
        assert!(!agent_with(0.0, false).ok);
        assert!(!agent(Err(&Failure::Failed("nobody is there".to_owned()))).ok);
    }
}
