//! The status for people: what is wrong first, then one line a scope, then resources and clients.

use std::fmt::Write as _;

use super::before::Before;
use super::findings::{findings, withheld};
use super::tables;
use super::warnings;
use crate::config::DEFAULT_TENANT;
use crate::procfs::NoValue;
use crate::report::signal::SignalReport;
use crate::report::status::{AgentReport, CourseReport, ScopeReport, StatusReport};
use crate::words::{many, number, paragraph, percent, signal, span};

/// The status as text of several lines.
pub(super) fn text(status: &StatusReport, before: &Before<'_>, verbose: bool) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _cannot: std::fmt::Result = write_status(&mut text, status, before, verbose);
    text
}

fn write_status(
    text: &mut String,
    status: &StatusReport,
    before: &Before<'_>,
    verbose: bool,
) -> std::fmt::Result {
    write_findings(text, status, before)?;
    write_agent(text, &status.agent)?;
    write_pages(text, &status.agent)?;
    warnings::write(text, &status.warnings, verbose)?;
    tables::scopes(text, status, before)?;
    tables::resources(text, status, before, verbose)?;
    tables::clients(text, &status.clients, verbose)?;
    if verbose {
        for scope in &status.scopes {
            write_scope(text, scope)?;
        }
    }
    Ok(())
}

fn write_findings(
    text: &mut String,
    status: &StatusReport,
    before: &Before<'_>,
) -> std::fmt::Result {
    if let Some(verdict) = &status.verdict {
        paragraph(text, "", &verdict.text)?;
    }
    let version = &status.agent.version;
    let found = findings(status, before);
    match found.len() {
        0 => writeln!(text, "tidegate {version}: nothing is wrong")?,
        1 => writeln!(text, "tidegate {version}: 1 thing to look at")?,
        things => writeln!(text, "tidegate {version}: {things} things to look at")?,
    }
    for finding in &found {
        paragraph(text, "  ! ", finding)?;
    }
    Ok(())
}

/// What a restart could not keep, as long as this life lasts.
fn write_pages(text: &mut String, agent: &AgentReport) -> std::fmt::Result {
    for pages in agent.pages.iter().filter(|pages| pages.begun == "anew") {
        let of_tenant = match pages.tenant.as_str() {
            DEFAULT_TENANT => String::new(),
            tenant => format!(" of {tenant}"),
        };
        let held = many(pages.earlier_inflight, "request");
        let told = format!(
            "pages    those{of_tenant} from before the start could not be gone on with: windows and breakers began anew, \
             which admitted one window more at most; {held} of before in flight, counted"
        );
        paragraph(text, "", &told)?;
    }
    Ok(())
}

fn write_agent(text: &mut String, agent: &AgentReport) -> std::fmt::Result {
    let AgentReport {
        uptime_s,
        tick_ms,
        tick_late_p99_ms,
        pid,
        directory,
        config,
        rules,
        http_permits,
        ..
    } = agent;
    write!(
        text,
        "\nagent    pid {pid}, up {}, tick {} ms",
        span(*uptime_s),
        number(*tick_ms)
    )?;
    if let Some(late) = tick_late_p99_ms {
        write!(text, ", p99 late {late:.1} ms")?;
    }
    writeln!(text, "\nsockets  {directory}")?;
    let config = config.as_deref().unwrap_or("built-in defaults");
    writeln!(text, "config   {config}")?;
    if let Some(rules) = rules {
        let there = if rules.found {
            ""
        } else {
            ", which is not there"
        };
        write!(
            text,
            "rules    {} from {}{there}",
            rules.count, rules.directory
        )?;
        match rules.read_s {
            Some(age) if rules.found => writeln!(text, ", read {} ago", span(age))?,
            _ => writeln!(text)?,
        }
    }
    let held = many(http_permits.held, "permit");
    if let Some(oldest) = http_permits.oldest_s {
        write!(
            text,
            "by HTTP  {held} not given back, oldest {}",
            span(oldest)
        )?;
    } else if http_permits.expired_total > 0 {
        write!(text, "by HTTP  every permit is given back")?;
    } else {
        return Ok(());
    }
    writeln!(text, "; {} ended by the clock", http_permits.expired_total)
}

/// All that is known of a scope.
fn write_scope(text: &mut String, scope: &ScopeReport) -> std::fmt::Result {
    writeln!(text, "\nscope {}", scope.name)?;
    if let Some(course) = &scope.course {
        paragraph(text, "  ", &course_of(&scope.state, course))?;
    }
    if let Some(declared) = &scope.declared_cpus {
        paragraph(text, "  ", &declared.text)?;
    }
    if let Some(limit) = scope.limits.allowed_qps {
        let limit = number(limit);
        writeln!(
            text,
            "  callers that hold no permit: at most {limit} a second"
        )?;
    }
    let names = scope.signals.keys().map(|name| name.len());
    let width = names.max().unwrap_or_default();
    for (name, signal) in &scope.signals {
        write_signal(text, name, width, signal)?;
    }
    if !scope.threads.is_empty() {
        writeln!(text, "  threads by name, those that use most CPU:")?;
    }
    for threads in &scope.threads {
        writeln!(text, "    {threads}")?;
    }
    Ok(())
}

/// Nothing where the signal belongs to another kind of scope.
fn write_signal(
    text: &mut String,
    name: &str,
    width: usize,
    told: &SignalReport,
) -> std::fmt::Result {
    match told {
        SignalReport::Measured { value, unit } => {
            writeln!(text, "  {name:<width$}  {}", signal(*value, unit))
        }
        SignalReport::Missing { not_measured, .. } if is_elsewhere(not_measured) => Ok(()),
        SignalReport::Missing { not_measured, .. } => {
            writeln!(text, "  {name:<width$}  not measured: {not_measured}")
        }
    }
}

/// How long it is in its state, and what it takes to leave it.
fn course_of(state: &str, course: &CourseReport) -> String {
    let CourseReport {
        since_s,
        changes_total,
        demand,
        incident_s: _,
        base_rt_ms: _,
        healthy_ticks: [seen, needed],
        ineffective,
        resting: _,
        withheld_s: _,
    } = course;
    let changes = many(*changes_total, "change");
    let since = format!("{state} for {}, {changes} of state so far", span(*since_s));
    let demand = format!("; demand {} of the capacity", percent(*demand));
    let ticks = format!(", {seen} of {needed} healthy ticks to leave");
    let mut told = match (state, needed) {
        // A mark alone asks for none: what the scope does itself is no overload.
        ("overload", 0) => since + &demand,
        ("overload", _) => since + &demand + &ticks,
        _ => since,
    };
    if *ineffective {
        told += "; refusing does not lower the pressure, so only the entry limit holds";
    }
    if let Some(why) = withheld(course) {
        told.push_str("; ");
        told.push_str(&why);
    }
    told
}

/// Whether a signal is of another kind of scope. It has no place here, so it is not missing.
fn is_elsewhere(not_measured: &str) -> bool {
    let faults = [NoValue::HostOnly, NoValue::GroupOnly];
    faults
        .iter()
        .any(|fault| not_measured.ends_with(&fault.to_string()))
}

#[cfg(test)]
mod tests;
