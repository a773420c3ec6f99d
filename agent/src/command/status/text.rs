//! The status for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::warnings::{self, Warnings};

use crate::config::DEFAULT_TENANT;
use crate::signal::Fault;
use crate::telemetry::threads;

/// What is shown of a status; whatever else it has is for scripts.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    agent: Agent,
    scopes: Vec<Scope>,
    resources: Vec<Resource>,
    clients: Vec<Client>,
    #[serde(default)]
    warnings: Warnings,
}

#[derive(Debug, Deserialize)]
struct Agent {
    version: String,
    uptime_s: f64,
    tick_ms: f64,
    tick_late_p99_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Scope {
    name: String,
    state: String,
    cause: String,
    course: Option<Course>,
    signals: BTreeMap<String, Signal>,
    #[serde(default)]
    threads: Vec<threads::Group>,
    limits: Limits,
}

#[derive(Debug, Deserialize)]
struct Course {
    since_s: f64,
    changes_total: u64,
    demand: f64,
    healthy_ticks: [u32; 2],
    ineffective: bool,
    resting: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Signal {
    Value { value: f64, unit: String },
    Missing { not_measured: String },
}

#[derive(Debug, Deserialize)]
struct Limits {
    inflight: Option<f64>,
    allowed_qps: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    #[serde(default)]
    tenant: String,
    name: String,
    passed_total: u64,
    refused_total: BTreeMap<String, u64>,
    inflight: u64,
    rt_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Client {
    #[serde(default)]
    tenant: String,
    pid: u32,
    uid: u32,
    name: String,
    door: String,
    held: u64,
}

/// The status as text of several lines.
pub(super) fn text(status: &Status) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_status(&mut text, status);
    text
}

fn write_status(text: &mut String, status: &Status) -> std::fmt::Result {
    let Agent {
        version,
        uptime_s,
        tick_ms,
        tick_late_p99_ms,
    } = &status.agent;
    write!(
        text,
        "tidegate {version}, up {uptime_s:.0} s, tick {tick_ms} ms"
    )?;
    if let Some(late) = tick_late_p99_ms {
        write!(text, " ({late:.1} ms late at most, 99 of 100)")?;
    }
    writeln!(text)?;
    for scope in &status.scopes {
        write_scope(text, scope)?;
    }
    write_resources(text, &status.resources)?;
    write_clients(text, &status.clients)?;
    warnings::write(text, &status.warnings)
}

fn write_scope(text: &mut String, scope: &Scope) -> std::fmt::Result {
    let Scope {
        name,
        state,
        cause,
        course,
        signals,
        threads,
        limits,
    } = scope;
    write!(text, "\nscope {name}: {state}")?;
    if cause != "none" {
        write!(text, ", because of {cause}")?;
    }
    if let Some(limit) = limits.inflight {
        write!(text, ", at most {limit:.0} in flight")?;
    }
    if let Some(limit) = limits.allowed_qps {
        write!(text, ", {limit:.0} a second without a permit")?;
    }
    writeln!(text)?;
    if let Some(course) = course {
        write_course(text, state, course)?;
    }
    for (name, signal) in signals {
        write_signal(text, name, signal)?;
    }
    for threads in threads {
        writeln!(text, "  {threads}")?;
    }
    Ok(())
}

/// Nothing where the signal belongs to another kind of scope.
fn write_signal(text: &mut String, name: &str, signal: &Signal) -> std::fmt::Result {
    match signal {
        Signal::Value { value, unit } => {
            let unit = if unit == "count" { "" } else { unit };
            let line = format!("  {name:<16} {value:>10.3} {unit}");
            writeln!(text, "{}", line.trim_end())
        }
        Signal::Missing { not_measured } if is_elsewhere(not_measured) => Ok(()),
        Signal::Missing { not_measured } => {
            writeln!(text, "  {name:<16} not measured: {not_measured}")
        }
    }
}

/// How long it is in its state, and what it takes to leave it.
fn write_course(text: &mut String, state: &str, course: &Course) -> std::fmt::Result {
    let Course {
        since_s,
        changes_total,
        demand,
        healthy_ticks: [seen, needed],
        ineffective,
        resting,
    } = course;
    let changes = if *changes_total == 1 {
        "change"
    } else {
        "changes"
    };
    write!(
        text,
        "  for {since_s:.0} s, {changes_total} {changes} so far"
    )?;
    if state == "overload" {
        write!(text, "; demand {demand:.2} of the capacity, ")?;
        if *needed == 0 {
            // A mark alone: what the scope does itself is no overload.
            write!(text, "but nothing queues: the entry limit holds")?;
        } else {
            write!(text, "{seen} of {needed} healthy ticks to leave")?;
        }
    }
    if *ineffective {
        write!(
            text,
            "; shedding does not lower the pressure, the entry limit holds"
        )?;
    }
    if *resting {
        write!(
            text,
            "; it has ended, and leaves when the hour has room for a change"
        )?;
    }
    writeln!(text)
}

fn write_resources(text: &mut String, resources: &[Resource]) -> std::fmt::Result {
    if resources.is_empty() {
        return Ok(());
    }
    let (name, passed, refused) = ("resource", "passed", "refused");
    writeln!(
        text,
        "\n{name:<32} {passed:>12} {refused:>12} {:>9} {:>9}",
        "in flight", "rt ms"
    )?;
    for resource in resources {
        let refused: u64 = resource
            .refused_total
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count));
        let rt = resource
            .rt_ms
            .map_or("-".to_owned(), |rt| format!("{rt:.2}"));
        writeln!(
            text,
            "{:<32} {:>12} {refused:>12} {:>9} {rt:>9}",
            owned(&resource.tenant, &resource.name),
            resource.passed_total,
            resource.inflight
        )?;
    }
    Ok(())
}

/// Whether a signal is of another kind of scope. It has no place here, so it is not missing.
fn is_elsewhere(not_measured: &str) -> bool {
    let faults = [Fault::HostOnly, Fault::GroupOnly];
    faults
        .iter()
        .any(|fault| not_measured.ends_with(&fault.to_string()))
}

/// A name with its tenant, where that is not the one of all.
fn owned(tenant: &str, name: &str) -> String {
    if tenant.is_empty() || tenant == DEFAULT_TENANT {
        name.to_owned()
    } else {
        format!("{tenant}: {name}")
    }
}

fn write_clients(text: &mut String, clients: &[Client]) -> std::fmt::Result {
    if clients.is_empty() {
        return Ok(());
    }
    let (pid, uid, held) = ("pid", "uid", "held");
    writeln!(
        text,
        "\n{pid:>8} {uid:>8} {:<24} {:<14} {held:>6}",
        "client", "door"
    )?;
    for client in clients {
        let Client {
            tenant,
            pid,
            uid,
            name,
            door,
            held,
        } = client;
        let name = owned(tenant, name);
        writeln!(text, "{pid:>8} {uid:>8} {name:<24} {door:<14} {held:>6}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape that DESIGN names for scripts.
    const STATUS: &str = r#"{"agent":{"version":"0.1.0","uptime_s":12.3,"tick_ms":100,"tick_late_p99_ms":0.4,
        "ebpf":{"rung":"none","reason":"not built"},"rules_generation":3},
        "scopes":[{"name":"host","cgroup":null,"state":"overload","cause":"cpu",
          "course":{"since_s":3.2,"changes_total":1,"demand":1.1,"healthy_ticks":[2,5],"ineffective":true,"resting":false},
          "signals":{"cpu":{"value":0.97,"unit":"ratio"},"throttle":{"not_measured":"no quota"},
          "steal":{"not_measured":"/proc/stat: belongs to the host, not to a group"}},
          "threads":[{"name":"GC Thread#","threads":4,"used_cpus":0.5,"cpu_share":0.25,"gc":true}],
          "limits":{"inflight":40,"allowed_qps":null}}],
        "resources":[{"tenant":"shop","name":"pay","passed_total":5,"refused_total":{},"inflight":0,"rt_ms":2.5},
          {"name":"order-create","passed_total":7,"refused_total":{"flow":2,"system":1},"inflight":1,"rt_ms":null}],
        "clients":[{"pid":7,"uid":1000,"name":"shop","door":"gate","scope":"host","held":1}]}"#;

    #[test]
    fn a_status_is_told_in_lines() {
        let text = text(&serde_json::from_str(STATUS).unwrap());
        for part in [
            "tidegate 0.1.0, up 12 s, tick 100 ms (0.4 ms late",
            "scope host: overload, because of cpu, at most 40 in flight",
            "  for 3 s, 1 change so far; demand 1.10 of the capacity, 2 of 5 healthy ticks to leave; shedding does not",
            "throttle         not measured: no quota",
            "GC Thread#            4 threads    0.500 CPUs   25 % garbage collection",
            "order-create                                7            3         1         -",
            "shop: pay                                   5            0         0      2.50",
            "       7     1000 shop",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(!text.contains("steal"), "it belongs elsewhere:\n{text}");
    }

    #[test]
    fn a_mark_without_a_queue_asks_for_no_healthy_ticks() {
        let status = STATUS.replace("[2,5]", "[0,0]");
        let text = text(&serde_json::from_str(&status).unwrap());
        assert!(text.contains("1.10 of the capacity, but nothing queues: the entry limit holds"));
        assert!(!text.contains("healthy ticks"), "{text}");
    }
}
